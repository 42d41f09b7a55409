# The image for those who start axllent/mailpit by name: ports 1025 and 8025, and the variables MP_*.
#     docker build --tag mailcheck . && docker build --tag axllent/mailpit - < etc/like-mailpit.dockerfile

ARG BASE=mailcheck
FROM $BASE
# Like that image, as root: the private keys and folders that tools mount belong to who starts them.
USER root
EXPOSE 1025 8025
HEALTHCHECK --interval=5s --timeout=5s --start-period=10m --retries=3 \
    CMD ["python", "-c", "from urllib.request import ProxyHandler, build_opener; build_opener(ProxyHandler({})).open('http://127.0.0.1:8025/readyz', timeout=4)"]
CMD ["serve", "--like", "mailpit"]

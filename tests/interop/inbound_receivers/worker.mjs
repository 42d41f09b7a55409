// An Email Worker that writes each mail to the log.
export default {
    async email(message) {
        const raw = await new Response(message.raw).text();
        if (message.to.startsWith("refused@")) {
            message.setReject("not here");
            return;
        }
        const shown = {
            from: message.from,
            to: message.to,
            subject: message.headers.get("subject"),
            size: message.rawSize,
            raw,
        };
        console.log(`mail ${JSON.stringify(shown)}`);
    },
};

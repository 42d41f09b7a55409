// Wait for a sign-up mail with the client that openapi-generator generates for Go.
package main

import (
	"context"
	"fmt"
	"net/smtp"
	"os"

	mailcheck "mailcheck.example/generated"
)

func must[Result any](result Result, _ any, err error) Result {
	if err != nil {
		panic(err)
	}
	return result
}

func main() {
	settings := mailcheck.NewConfiguration()
	settings.Servers = mailcheck.ServerConfigurations{{URL: os.Getenv("MAILCHECK_API")}}
	settings.AddDefaultHeader("X-API-Key", os.Getenv("MAILCHECK_API_KEY"))
	inbox := mailcheck.NewAPIClient(settings).InboxAPI
	here := context.Background()

	address := must(inbox.GetInboxAddress(here).Tag("go").Unique(true).Execute())
	server := os.Getenv("SMTP_HOST") + ":" + os.Getenv("SMTP_PORT")
	if err := smtp.SendMail(server, nil, "shop@example.com", []string{address.Address}, []byte(os.Getenv("MAIL"))); err != nil {
		panic(err)
	}
	mail := must(inbox.WaitForMessage(here).Tag(address.Tag).After(address.Cursor).Subject("Welcome").Timeout(30).Execute())
	deleted := must(inbox.DeleteMessage(here, mail.Id).Execute())
	fmt.Println(mail.Codes[0], mail.Links[0], deleted.Success)
}

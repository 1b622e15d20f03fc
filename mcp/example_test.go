package mcp

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/harness"
)

// Members get the tool of a server, strangers do not.
func ExampleUse() {
	type in struct {
		Ticket string `json:"ticket"`
	}
	tracker := sdk.NewServer(&sdk.Implementation{Name: "tracker", Version: "1"}, nil)
	sdk.AddTool(tracker, &sdk.Tool{Name: "status", Description: "Tells the status of a ticket."},
		func(context.Context, *sdk.CallToolRequest, in) (*sdk.CallToolResult, any, error) {
			return nil, "open", nil
		})
	web := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return tracker }, &sdk.StreamableHTTPOptions{Stateless: true}))
	defer web.Close()
	defer web.CloseClientConnections()

	servers, err := Open(context.Background(), Options{Servers: map[string]Settings{"tracker": {URL: web.URL, NewTools: true, Who: chat.Member}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer servers.Close()
	agent := func(c *harness.Context) string {
		harness.UseModel(c, "fast")
		if s, ok := servers.Server("tracker"); ok {
			Use(c, s)
		}
		return "Answer questions about tickets."
	}
	for _, trust := range []chat.Role{chat.Outsider, chat.Member} {
		m, _ := harness.Render(agent, harness.Snapshot{Trust: trust})
		fmt.Print(trust, ":")
		for _, t := range m.Tools {
			fmt.Print(" ", t.Name)
		}
		fmt.Println()
	}
	// Output:
	// outsider:
	// member: mcp__tracker__status
}

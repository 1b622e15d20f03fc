package discord

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"

	"github.com/bwmarrin/discordgo"
)

// commands are what people may call.
func commands() []*discordgo.ApplicationCommand {
	return []*discordgo.ApplicationCommand{{
		Type: discordgo.ChatApplicationCommand, Name: "agent", Description: "Talk to the agent",
		Options: []*discordgo.ApplicationCommandOption{
			{
				Type: discordgo.ApplicationCommandOptionSubCommand, Name: "ask", Description: "Ask something",
				Options: []*discordgo.ApplicationCommandOption{
					{Type: discordgo.ApplicationCommandOptionString, Name: "text", Description: "What to ask", Required: true, MaxLength: 6000},
				},
			},
			{Type: discordgo.ApplicationCommandOptionSubCommand, Name: "stop", Description: "Stop what is under way here"},
		},
	}}
}

// register makes the commands known, unless they are: Discord lets an application
// make two hundred a day.
func (c *Channel) register(ctx context.Context) error {
	set, err := json.Marshal(commands())
	if err != nil {
		return err
	}
	own := c.identity()
	sum := sha256.Sum256(append([]byte(own.app+" "), set...))
	digest := hex.EncodeToString(sum[:])
	if c.values != nil {
		if was, err := c.values.Load(ctx, "commands"); err != nil || string(was) == digest {
			return err
		}
	}
	if err := c.request(ctx, http.MethodPut, "/applications/"+own.app+"/commands", "application/json", set, nil); err != nil {
		return classify(err)
	}
	if c.values == nil {
		return nil
	}
	return c.values.Save(ctx, "commands", []byte(digest))
}

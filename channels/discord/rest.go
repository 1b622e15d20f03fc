package discord

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/bwmarrin/discordgo"

	"github.com/heddlehq/heddle/channels"
)

const (
	defaultRetryAfter = 10 * time.Second
	maxAnswerBytes    = 16 << 20
)

// call makes one request and reads the answer into out, unless that is nil.
func (c *Channel) call(ctx context.Context, method, path string, in, out any) error {
	if in == nil {
		return c.request(ctx, method, path, "", nil, out)
	}
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	return c.request(ctx, method, path, "application/json", body, out)
}

// request is call with a body of any kind. It waits for nothing and repeats
// nothing: discordgo's own buckets sleep, so each request has one of its own, and
// the client's transport refuses what its bucket has no room for.
func (c *Channel) request(ctx context.Context, method, path, media string, body []byte, out any) error {
	b := &discordgo.Bucket{}
	b.Lock() // the request unlocks it
	answer, err := c.rest.RequestWithLockedBucket(method, c.apiURL+path, media, body, b, 0,
		discordgo.WithContext(ctx), discordgo.WithRestRetries(0), discordgo.WithRetryOnRatelimit(false))
	if err != nil || out == nil {
		return err
	}
	return json.Unmarshal(answer, out)
}

// code is Discord's own code of an error, 0 if it has none.
func code(err error) int {
	var re *discordgo.RESTError
	if errors.As(err, &re) && re.Message != nil {
		return re.Message.Code
	}
	return 0
}

// status is the HTTP status of an error that is an answer, 0 otherwise.
func status(err error) int {
	var re *discordgo.RESTError
	if errors.As(err, &re) {
		return re.Response.StatusCode
	}
	return 0
}

// limitedError says that a request was refused, by Discord or before it was made,
// because there were too many.
type limitedError struct{ after time.Duration }

func (e *limitedError) Error() string { return fmt.Sprintf("rate limited for %v", e.after) }

// classify turns any failure of a call into its verdict.
func classify(err error) *channels.SendError {
	verdict := func(v channels.Verdict, reason string) *channels.SendError {
		return &channels.SendError{Verdict: v, Reason: reason, Err: err}
	}
	var (
		limited *limitedError
		dial    *net.OpError
		dns     *net.DNSError
		cert    *tls.CertificateVerificationError
		slow    interface{ Timeout() bool }
	)
	switch s := status(err); {
	case errors.As(err, &limited):
		return &channels.SendError{Verdict: channels.Limited, RetryAfter: limited.after, Reason: "rate limited", Err: err}
	case s >= 500 || s == http.StatusRequestTimeout:
		return verdict(channels.Unknown, "http "+strconv.Itoa(s))
	case s != 0:
		return refused(err, s)
	case errors.As(err, &dns), errors.As(err, &dial) && dial.Op == "dial":
		return verdict(channels.NotMade, "no connection") // nothing was written
	case errors.As(err, &cert):
		return verdict(channels.NotMade, "certificate not accepted")
	case errors.Is(err, context.Canceled):
		return verdict(channels.Unknown, "cancelled")
	case errors.As(err, &slow) && slow.Timeout():
		return verdict(channels.Unknown, "timeout")
	}
	return verdict(channels.Unknown, "no usable answer")
}

// reasons are the names of the codes that operators meet.
var reasons = map[int]string{
	discordgo.ErrCodeUnknownChannel:                                   "unknown channel",
	discordgo.ErrCodeUnknownMessage:                                   "unknown message",
	discordgo.ErrCodeMissingAccess:                                    "missing access",
	discordgo.ErrCodeMissingPermissions:                               "missing permissions",
	discordgo.ErrCodeCannotSendMessagesToThisUser:                     "cannot send messages to this user",
	discordgo.ErrCodeCannotSendMessagesInVoiceChannel:                 "cannot send messages in this kind of channel",
	discordgo.ErrCodeInvalidFormBody:                                  "invalid form body",
	discordgo.ErrCodeCannotReplyWithoutPermissionToReadMessageHistory: "cannot reply without permission to read the history",
	discordgo.ErrCodePerformedOperationOnArchivedThread:               "thread is archived",
	discordgo.ErrCodeThreadIsLocked:                                   "thread is locked",
}

// refused is the verdict of an answer that says that nothing was done.
func refused(err error, status int) *channels.SendError {
	se := &channels.SendError{Verdict: channels.Rejected, Reason: "http " + strconv.Itoa(status), Err: err}
	switch n := code(err); n {
	case 0:
	case discordgo.ErrCodeThisActionCannotBePerformedDueToSlowmodeRateLimit:
		se.Verdict, se.RetryAfter, se.Reason = channels.Limited, defaultRetryAfter, "slow mode"
	case discordgo.ErrCodeSendMessagesHasBeenTemporarilyDisabled, discordgo.ErrCodeFeatureTemporarilyDisabledServerSide, discordgo.ErrCodeAPIResourceIsCurrentlyOverloaded:
		se.Verdict, se.Reason = channels.NotMade, "error "+strconv.Itoa(n)
	default:
		se.Reason = "error " + strconv.Itoa(n)
		if name := reasons[n]; name != "" {
			se.Reason = name
		}
	}
	return se
}

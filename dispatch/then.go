package dispatch

import "context"

// then lets a channel do what it has to before a request is acknowledged.
func (g *Gateway) then(ctx context.Context, channel string, do func(context.Context) error) error {
	if do == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), admitTime)
	defer cancel()
	_, err := guard(g.Logger, func() (struct{}, error) { return struct{}{}, do(ctx) })
	if err != nil {
		g.Logger.Error("delivery not carried out", "channel", channel, "err", err)
	}
	return err
}

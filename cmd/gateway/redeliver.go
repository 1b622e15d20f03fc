package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/heddlehq/heddle/channels"
	"github.com/heddlehq/heddle/config"
)

// A redeliverCmd sends recorded deliveries to a running gateway, signed as their
// provider would.
type redeliverCmd struct {
	Path   []string `arg:"" help:"Recorded deliveries, or folders of them: a body, or a whole request that begins with its first line (POST /slack/events HTTP/1.1)."`
	To     string   `help:"Where bodies are delivered to: channel and route, such as slack/events. Requests say it themselves." placeholder:"CHANNEL/ROUTE"`
	Header []string `help:"A header of bodies, such as X-GitHub-Event:issues; repeatable." placeholder:"NAME:VALUE"`
	URL    string   `help:"Public listener of the gateway (default: where the settings put it)."`
}

// A delivery is one recorded request.
type delivery struct {
	name, channel, route string
	header               http.Header
	body                 []byte
}

var errRefusedDeliveries = errors.New("refused")

// Run delivers, in the order of the names, one after the other.
func (c redeliverCmd) Run(ctx context.Context, e env, s *config.Settings) error {
	p := partsOf(s)
	defer p.close()
	if err := s.Err(); err != nil {
		return err
	}
	paths, err := c.files()
	if err != nil {
		return err
	}
	at := strings.TrimSuffix(c.URL, "/")
	if at == "" {
		at = adminURL(s.Get(varListen))
	}
	bad := 0
	for _, path := range paths {
		d, err := c.read(path)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		status, err := d.send(ctx, at, p.channels)
		if err != nil {
			return reached(at, err)
		}
		if status >= http.StatusBadRequest {
			bad++
		}
		fmt.Fprintf(e.stdout, "%s  %s/%s  %d %s\n", path, d.channel, d.route, status, http.StatusText(status))
	}
	if bad > 0 {
		return fmt.Errorf("%d of %d deliveries were %w", bad, len(paths), errRefusedDeliveries)
	}
	return nil
}

// files are the paths, those of folders in the order of their names.
func (c redeliverCmd) files() ([]string, error) {
	var out []string
	for _, p := range c.Path {
		err := filepath.WalkDir(p, func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case strings.HasPrefix(d.Name(), ".") && path != p:
				if d.IsDir() {
					return fs.SkipDir
				}
			case d.Type().IsRegular() || path == p && !d.IsDir():
				out = append(out, path)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s: no files; want recorded deliveries", strings.Join(c.Path, ", "))
	}
	return out, nil
}

var requestLine = []byte("POST /")

// read reads one recorded delivery.
func (c redeliverCmd) read(path string) (delivery, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return delivery{}, err
	}
	d := delivery{name: path, header: http.Header{}, body: raw}
	to := c.To
	if bytes.HasPrefix(raw, requestLine) {
		if to, err = d.request(raw); err != nil {
			return d, err
		}
	} else {
		for _, h := range c.Header {
			name, value, ok := strings.Cut(h, ":")
			if !ok {
				return d, fmt.Errorf("--header: found %q; want NAME:VALUE", h)
			}
			d.header.Add(name, strings.TrimSpace(value))
		}
	}
	var ok bool
	if d.channel, d.route, ok = strings.Cut(strings.Trim(to, "/"), "/"); !ok {
		return d, fmt.Errorf("--to: found %q; want a channel and its route, such as slack/events", to)
	}
	return d, nil
}

// request takes a delivery apart that is a whole request. Editors write lines
// that end otherwise than HTTP's.
func (d *delivery) request(raw []byte) (to string, err error) {
	head, body, ok := bytes.Cut(raw, []byte("\r\n\r\n"))
	if !ok {
		head, body, _ = bytes.Cut(raw, []byte("\n\n"))
	}
	head = slices.Concat(bytes.TrimRight(head, "\r\n"), []byte("\r\n\r\n"))
	req, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(head)))
	if err != nil {
		return "", fmt.Errorf("found a request that cannot be read; want its first line, headers, an empty line and the body: %w", err)
	}
	d.header, d.body = req.Header, body
	for _, gone := range []string{"Content-Length", "Host", "Connection", "Accept-Encoding", "Transfer-Encoding"} {
		d.header.Del(gone)
	}
	return req.URL.Path, nil
}

// send signs a delivery anew, makes it and returns the answer's status.
func (d delivery) send(ctx context.Context, at string, cs []channels.Channel) (int, error) {
	route, signer, err := d.find(cs)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", d.name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, at+"/"+d.channel+"/"+d.route, bytes.NewReader(d.body))
	if err != nil {
		return 0, err
	}
	req.Header = d.header.Clone()
	if req.Header.Get("Content-Type") == "" {
		req.Header.Set("Content-Type", route.MediaTypes[0])
	}
	for name, values := range signer.Sign(d.route, d.body, time.Now()) {
		req.Header[name] = values
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20)) // the status says it all
	return resp.StatusCode, nil
}

// find returns the route of a delivery and who signs for it.
func (d delivery) find(cs []channels.Channel) (channels.Route, channels.Signer, error) {
	var known []string
	for _, c := range cs {
		w, ok := c.(channels.Webhook)
		if !ok {
			continue
		}
		for _, r := range w.Routes() {
			known = append(known, c.Name()+"/"+r.Name)
			if c.Name() != d.channel || r.Name != d.route {
				continue
			}
			s, ok := c.(channels.Signer)
			if !ok {
				return r, nil, fmt.Errorf("%s signs with a key that only it has, so its deliveries cannot be made again", c.Name())
			}
			return r, s, nil
		}
	}
	slices.Sort(known)
	return channels.Route{}, nil, fmt.Errorf("found %s/%s; want a route that the settings enable: %s", d.channel, d.route, strings.Join(known, ", "))
}

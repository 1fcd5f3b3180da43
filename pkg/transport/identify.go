package transport

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/perfmq/perfmq/pkg/driver"
)

// knock is how a client of a protocol begins, and how a server answers that.
type knock struct {
	scheme, title string
	says          string
	answers       []string // their beginnings, of one length
	behind        int      // bytes before them
	encrypted     bool
	next          []string // see [Protocol.NextProtos]
}

const schemeHTTP = "http"

func knocks() []knock {
	topic := `{"code":105,"language":"OTHER","version":0,"opaque":0,"flag":0,"extFields":{"topic":"perfmq"}}`
	frame := binary.BigEndian.AppendUint32(nil, uint32(4+len(topic)))
	frame = binary.BigEndian.AppendUint32(frame, uint32(len(topic)))
	return []knock{
		{"amqp", "AMQP", "AMQP\x03\x01\x00\x00", []string{"AMQP"}, 0, false, nil},
		{
			"stomp", "STOMP", "CONNECT\naccept-version:1.0,1.1,1.2\nhost:/\n\n\x00",
			[]string{"CONNEC", "ERROR\n"},
			0, false, nil,
		},
		{"rocketmq", "RocketMQ", string(frame) + topic, []string{`{"code":`}, len("LLLLHHHH"), false, nil},
		{
			"rocketmq+grpc", "gRPC", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00",
			[]string{"\x04\x00\x00\x00\x00\x00"},
			len("LLL"), false,
			[]string{"h2"},
		},
		{schemeHTTP, "HTTP", "GET / HTTP/1.0\r\n\r\n", []string{"HTTP/"}, 0, false, nil},
	}
}

// knockTimeout bounds the search for the protocol of a port: a handshake and an answer.
const knockTimeout = 1500 * time.Millisecond

// Diagnose is [driver.Factory.Diagnose]: it reports a host of the URL that speaks another protocol, or the same one
// with TLS where none was asked for, or the reverse. It asks over connections of its own.
func (p *Protocol) Diagnose(ctx context.Context, opts driver.OpenOptions) error {
	t, err := p.Parse(opts.URL)
	if err != nil {
		return nil // reported before
	}
	ctx, cancel := context.WithTimeout(ctx, knockTimeout)
	defer cancel()
	errs := make(chan error, len(t.Hosts))
	for _, host := range t.Hosts {
		go func() { errs <- p.diagnose(ctx, host, t.TLS) }()
	}
	for range t.Hosts {
		if err := <-errs; err != nil {
			return err
		}
	}
	return nil
}

// diagnose asks one host in every protocol, with TLS and without; a knock without a protocol is only a TLS handshake.
func (p *Protocol) diagnose(ctx context.Context, host Endpoint, encrypted bool) error {
	var list []knock
	all := knocks()
	if p.Hello != "" {
		all = append(all, knock{p.Schemes[0], p.Title, p.Hello, p.Answers, 0, false, p.NextProtos})
	}
	known := slices.ContainsFunc(all, func(k knock) bool { return k.scheme == p.Schemes[0] })
	for _, k := range all {
		if !known && k.scheme != schemeHTTP {
			continue // a port may speak it beside that of p
		}
		list = append(list, k)
		k.encrypted = true
		list = append(list, k)
	}
	list = append(list, knock{encrypted: true})
	answered := make([]bool, len(list))
	well, silent := false, false // it answers as it should, or not within the time: it may be slow
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var asking sync.WaitGroup
	for i := range list {
		asking.Go(func() {
			k := &list[i]
			answered[i] = k.answered(ctx, host)
			if k.scheme == p.Schemes[0] && k.encrypted == encrypted {
				if well, silent = answered[i], ctx.Err() != nil; well {
					cancel() // some ports speak several protocols
				}
			}
		})
	}
	asking.Wait()
	for i := range list {
		k := &list[i]
		demandsTLS := k.encrypted && (k.scheme == "" || k.scheme == p.Schemes[0])
		if answered[i] && !well && (!silent || !demandsTLS) {
			return p.misplaced(host, k, encrypted)
		}
	}
	return nil
}

// misplaced is the error about a host that speaks something else than it should; nil if that is not known.
func (p *Protocol) misplaced(host Endpoint, is *knock, encrypted bool) error {
	if is.scheme == "" && encrypted {
		return nil
	}
	own, hint := p.Schemes[0], "give the broker's "+p.Title+" port"
	var text string
	switch {
	case is.scheme == "", is.scheme == own && is.encrypted:
		text = "the port demands an encrypted connection"
		if hint = "the driver has none"; len(p.Encrypted) > 0 {
			hint = "write " + p.Encrypted[0] + "://" + host.String()
		}
	case is.scheme == own:
		hint = "write " + own + "://" + host.String() + ", or give the broker's port for TLS"
		text = "the port speaks " + p.Title + " without TLS"
	case is.scheme == schemeHTTP:
		text = "a web server answers at this port, no " + p.Title + " broker"
	default:
		scheme, rest, _ := strings.Cut(is.scheme, "+")
		command := scheme
		switch {
		case rest != "" && is.encrypted:
			scheme += "s+" + rest
		case rest != "":
			scheme += "+" + rest
		case is.encrypted:
			scheme += "+ssl"
		}
		hint += ", or use perfmq " + command + " with --url " + scheme + "://" + host.String()
		text = "the port speaks " + is.title + ", not " + p.Title
	}
	return driver.Errorf(driver.ClassProtocol, "connect to "+host.String(), hint, "%s", text)
}

// answered reports whether a server answers the knock, or, without one, the TLS handshake. Nothing secret goes over the
// connection, so that no certificate matters.
func (f *knock) answered(ctx context.Context, host Endpoint) bool {
	dial := (&net.Dialer{}).DialContext
	if f.encrypted {
		config := &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12} //nolint:gosec // sends no secret
		config.NextProtos = f.next
		dial = (&tls.Dialer{Config: config}).DialContext
	}
	conn, err := dial(ctx, "tcp", host.String())
	if err != nil {
		return false
	}
	defer func() { _ = conn.Close() }()
	if f.scheme == "" {
		return true
	}
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	if _, err := conn.Write([]byte(f.says)); err != nil {
		return false
	}
	got := make([]byte, f.behind+len(f.answers[0]))
	_, err = io.ReadFull(conn, got)
	return err == nil && slices.Contains(f.answers, string(got[f.behind:]))
}

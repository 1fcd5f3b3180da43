package transport

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"slices"
	"time"

	"github.com/perfmq/perfmq/pkg/driver"
)

// knock is how a client of a protocol begins, and how a server answers that.
type knock struct {
	scheme, title string
	says          string
	answers       []string // their beginnings, of one length
	behind        int      // bytes before them
}

const schemeHTTP = "http"

func knocks() []knock {
	topic := `{"code":105,"language":"OTHER","version":0,"opaque":0,"flag":0,"extFields":{"topic":"perfmq"}}`
	frame := binary.BigEndian.AppendUint32(nil, uint32(4+len(topic)))
	frame = binary.BigEndian.AppendUint32(frame, uint32(len(topic)))
	return []knock{
		{"amqp", "AMQP", "AMQP\x03\x01\x00\x00", []string{"AMQP"}, 0},
		{
			"stomp", "STOMP", "CONNECT\naccept-version:1.0,1.1,1.2\nhost:/\n\n\x00",
			[]string{"CONNEC", "ERROR\n"},
			0,
		},
		{"rocketmq", "RocketMQ", string(frame) + topic, []string{`{"code":`}, len("LLLLHHHH")},
		{schemeHTTP, "HTTP", "GET / HTTP/1.0\r\n\r\n", []string{"HTTP/"}, 0},
	}
}

// knockTimeout bounds the search for the protocol of a port: a handshake and an answer.
const knockTimeout = 1500 * time.Millisecond

// knockGrace is how long after an answer in another protocol one in the own protocol may come: some ports speak
// several, and the broker may be slow.
const knockGrace = time.Second

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

// found is an answer to a knock; without a knock only the TLS handshake was answered.
type found struct {
	knock
	encrypted bool
	yes       bool
}

func (p *Protocol) diagnose(ctx context.Context, host Endpoint, encrypted bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the others
	list := append(knocks(), knock{})
	answers := make(chan *found, 2*len(list))
	for _, k := range list {
		for _, secure := range []bool{false, true} {
			go func() {
				f := &found{knock: k, encrypted: secure}
				f.yes = f.answered(ctx, host)
				answers <- f
			}()
		}
	}
	var other *found
	var grace <-chan time.Time
	refused := false // the knock of the own protocol
	for range cap(answers) {
		select {
		case f := <-answers:
			own := f.scheme == p.Schemes[0] && f.encrypted == encrypted
			switch {
			case own && f.yes:
				return nil
			case own:
				refused = true
			case f.yes && (other == nil || other.scheme == ""):
				other = f
			}
		case <-grace:
			return p.misplaced(host, other, encrypted)
		}
		switch {
		case other == nil:
		case other.scheme != "" && refused:
			return p.misplaced(host, other, encrypted)
		case grace == nil:
			grace = time.After(knockGrace)
		}
	}
	return p.misplaced(host, other, encrypted)
}

// misplaced is the error about a host that speaks something else than it should; nil if that is not known.
func (p *Protocol) misplaced(host Endpoint, is *found, encrypted bool) error {
	if is == nil || is.scheme == "" && encrypted {
		return nil
	}
	op, own := "connect to "+host.String(), p.Schemes[0]
	fail := func(hint, format string, args ...any) error {
		return driver.Errorf(driver.ClassProtocol, op, hint, format, args...)
	}
	switch {
	case is.scheme == "", is.scheme == own && is.encrypted:
		return fail("write "+p.Encrypted[0]+"://"+host.String(), "the port demands an encrypted connection")
	case is.scheme == own:
		return fail("write "+own+"://"+host.String()+", or give the broker's port for TLS", "the port speaks %s without TLS",
			p.Title)
	case is.scheme == schemeHTTP:
		return fail("give the broker's "+p.Title+" port", "a web server answers at this port, no %s broker", p.Title)
	}
	scheme := is.scheme
	if is.encrypted {
		scheme += "+ssl"
	}
	return fail("give the broker's "+p.Title+" port, or use perfmq "+is.scheme+" with --url "+scheme+"://"+host.String(),
		"the port speaks %s, not %s", is.title, p.Title)
}

// answered reports whether a server answers the knock, or, without one, the TLS handshake.
func (f *found) answered(ctx context.Context, host Endpoint) bool {
	if f.scheme == "" && !f.encrypted {
		return false
	}
	conn, err := knockDial(ctx, host, f.encrypted)
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
	if _, err := io.ReadFull(conn, got); err != nil {
		return false
	}
	return slices.Contains(f.answers, string(got[f.behind:]))
}

// knockDial connects, with TLS if asked for. Nothing secret goes over the connection, so that no certificate matters.
func knockDial(ctx context.Context, host Endpoint, secure bool) (net.Conn, error) {
	dialer := &net.Dialer{}
	if !secure {
		return dialer.DialContext(ctx, "tcp", host.String())
	}
	config := &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12} //nolint:gosec // nothing secret is sent
	return (&tls.Dialer{NetDialer: dialer, Config: config}).DialContext(ctx, "tcp", host.String())
}

package amqp

import (
	"fmt"
	"slices"
	"strings"

	"github.com/xdg-go/scram"

	wire "github.com/perfmq/perfmq/internal/wire/amqp"
	"github.com/perfmq/perfmq/pkg/driver"
)

// Names of mechanisms (RFC 4422, 4505, 4616, 7677; SCRAM-SHA-512 is the same with that hash).
const (
	mechAnonymous = "ANONYMOUS"
	mechPlain     = "PLAIN"
	mechExternal  = "EXTERNAL"
	mechSCRAM256  = "SCRAM-SHA-256"
	mechSCRAM512  = "SCRAM-SHA-512"
)

// maxRounds bounds the challenges of a login: SCRAM has two.
const maxRounds = 8

// login goes through the SASL layer (Security, section 5.3).
func (h *handshake) login() error {
	p, err := h.frame(wire.FrameSASL)
	if err != nil {
		return err
	}
	var offer wire.SASLMechanisms
	if p.Kind != wire.DescMechanisms || offer.Decode(&p.Fields) != nil {
		return protocolError("no list of ways to log in")
	}
	mechanism, err := h.c.driver.cfg.mechanism(offer.Mechanisms)
	if err != nil {
		return err
	}
	exchange, first, err := h.begin(mechanism)
	if err != nil {
		return err
	}
	init := wire.SASLInit{Mechanism: mechanism, InitialResponse: first, Hostname: h.host.Host}
	if err := h.write(init.AppendFrame(nil)); err != nil {
		return err
	}
	for range maxRounds {
		if p, err = h.frame(wire.FrameSASL); err != nil {
			return err
		}
		switch p.Kind {
		case wire.DescChallenge:
			var challenge wire.SASLChallenge
			if err := challenge.Decode(&p.Fields); err != nil {
				return protocolError("a frame that cannot be read: %w", err)
			}
			answer, err := exchange(challenge.Challenge)
			if err != nil {
				return err
			}
			response := wire.SASLResponse{Response: answer}
			if err := h.write(response.AppendFrame(nil)); err != nil {
				return err
			}
		case wire.DescOutcome:
			return h.outcome(&p, exchange)
		default:
			return protocolError("a frame of kind %#x in the middle of the login", uint64(p.Kind))
		}
	}
	return protocolError("one challenge after the other, and no end of the login")
}

// mechanism chooses among what the broker offers.
func (c *config) mechanism(offered []string) (string, error) {
	var wanted []string
	switch c.opts.SASL {
	case saslPlain:
		wanted = []string{mechPlain}
	case saslExternal:
		wanted = []string{mechExternal}
	case saslSCRAM256:
		wanted = []string{mechSCRAM256}
	case saslSCRAM512:
		wanted = []string{mechSCRAM512}
	case saslAnonymous:
		wanted = []string{mechAnonymous}
	default:
		wanted = []string{mechAnonymous}
		if c.target.User != "" {
			wanted = []string{mechPlain, mechSCRAM512, mechSCRAM256}
		}
	}
	for _, name := range wanted {
		if slices.Contains(offered, name) {
			return name, nil
		}
	}
	return "", driver.Errorf(driver.ClassAuth, "", "give --user and --password, or choose another -o sasl",
		"the broker does not offer this way to log in: %s, only %.200q", strings.Join(wanted, " or "), offered)
}

// exchange answers a challenge.
type exchange func(challenge []byte) (answer []byte, err error)

// begin returns the first response of a mechanism, and how to go on.
func (h *handshake) begin(mechanism string) (exchange, []byte, error) {
	target := &h.c.driver.cfg.target
	none := func([]byte) ([]byte, error) { return nil, protocolError("a challenge, which %s has not", mechanism) }
	switch mechanism {
	case mechPlain:
		return none, []byte("\x00" + target.User + "\x00" + target.Password), nil
	case mechSCRAM256:
		return beginSCRAM(scram.SHA256, target.User, target.Password)
	case mechSCRAM512:
		return beginSCRAM(scram.SHA512, target.User, target.Password)
	case mechAnonymous:
		return none, []byte("anonymous"), nil
	default: // EXTERNAL: who we are is in the certificate
		return none, []byte{}, nil
	}
}

// beginSCRAM begins a login that does not show the password, and by which the broker proves that it knows it (RFC 5802).
func beginSCRAM(hash scram.HashGeneratorFcn, user, password string) (exchange, []byte, error) {
	client, err := hash.NewClient(user, password, "")
	if err != nil {
		return nil, nil, driver.Errorf(driver.ClassAuth, "", "check --user and --password", "they cannot be used for SCRAM: %w", err)
	}
	talk := client.NewConversation()
	first, err := talk.Step("")
	if err != nil {
		return nil, nil, fmt.Errorf("begin SCRAM: %w", err)
	}
	return func(challenge []byte) ([]byte, error) {
		if talk.Done() {
			return []byte{}, nil
		}
		answer, err := talk.Step(string(challenge))
		if err != nil {
			return nil, driver.Errorf(driver.ClassAuth, "", "is this the right broker?", "the broker does not prove that it knows the password: %w", err)
		}
		return []byte(answer), nil
	}, []byte(first), nil
}

// outcome handles the end of the login.
func (h *handshake) outcome(p *wire.Body, step exchange) error {
	var f wire.SASLOutcome
	if err := f.Decode(&p.Fields); err != nil {
		return protocolError("a frame that cannot be read: %w", err)
	}
	switch f.Code {
	case wire.SASLOK:
		if len(f.AdditionalData) > 0 { // the broker's proof, where it comes with the outcome
			_, err := step(f.AdditionalData)
			return err
		}
		return nil
	case wire.SASLAuth:
		return driver.Errorf(driver.ClassAuth, "", "check --user and --password", "the broker does not accept the login")
	default:
		return driver.Errorf(driver.ClassAuth, "", "look into the broker's log", "the login failed inside the broker (SASL code %d)", f.Code)
	}
}

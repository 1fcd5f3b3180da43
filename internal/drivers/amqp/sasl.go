package amqp

import (
	"slices"
	"strconv"
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
	talk, first, err := h.c.driver.begin(mechanism)
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
			answer, err := talk.answer(challenge.Challenge)
			if err != nil {
				return err
			}
			response := wire.SASLResponse{Response: answer}
			if err := h.write(response.AppendFrame(nil)); err != nil {
				return err
			}
		case wire.DescOutcome:
			return loginEnd(&p, talk)
		default:
			return protocolError("a frame of kind %#x in the middle of the login", uint64(p.Kind))
		}
	}
	return protocolError("one challenge after the other, and no end of the login")
}

// mechanism chooses among the mechanisms that the broker offers.
func (c *config) mechanism(offered []string) (string, error) {
	var wanted []string
	switch c.Options.SASL {
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
		if c.Target.User != "" {
			wanted = []string{mechSCRAM512, mechSCRAM256, mechPlain} // the safest one that the broker offers
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

// begin returns the login by a mechanism and its first response.
func (d *amqpDriver) begin(mechanism string) (login, []byte, error) {
	target := &d.cfg.Target
	switch mechanism {
	case mechPlain:
		return silent(mechPlain), []byte("\x00" + target.User + "\x00" + target.Password), nil
	case mechSCRAM256, mechSCRAM512:
		return d.beginSCRAM(mechanism)
	case mechAnonymous:
		return silent(mechAnonymous), []byte("anonymous"), nil
	default: // the certificate identifies this client
		return silent(mechExternal), []byte{}, nil
	}
}

// login is the rest of a mechanism, after the first response.
type login interface {
	answer(challenge []byte) ([]byte, error)
	// accepted checks, when the broker has accepted the login, that it has proven itself as well. data is the additional
	// data of its outcome.
	accepted(data []byte) error
}

// silent is a mechanism without challenges, by its name.
type silent string

func (s silent) answer([]byte) ([]byte, error) {
	return nil, protocolError("a challenge, which %s does not have", string(s))
}

func (s silent) accepted([]byte) error { return nil }

// maxIterations bounds the work that a broker may ask for: about a second.
const maxIterations = 1_000_000

// scramLogin is a login that does not show the password, and by which the broker proves that it knows it (RFC 5802).
type scramLogin struct{ *scram.ClientConversation }

// beginSCRAM uses one client for all connections of a driver: it keeps the keys, which are dear to derive.
func (d *amqpDriver) beginSCRAM(mechanism string) (login, []byte, error) {
	hash := scram.SHA256
	if mechanism == mechSCRAM512 {
		hash = scram.SHA512
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	client := d.scram[mechanism]
	if client == nil {
		var err error
		if client, err = hash.NewClient(d.cfg.Target.User, d.cfg.Target.Password, ""); err != nil {
			return nil, nil, driver.Errorf(driver.ClassAuth, "", "choose -o sasl=plain, or another password", "%s: %w",
				mechanism, err)
		}
		d.scram[mechanism] = client
	}
	talk := client.NewConversation()
	first, err := talk.Step("")
	return scramLogin{talk}, []byte(first), err
}

func (l scramLogin) answer(challenge []byte) ([]byte, error) {
	if l.Done() {
		return []byte{}, nil
	}
	for field := range strings.SplitSeq(string(challenge), ",") {
		if text, ok := strings.CutPrefix(field, "i="); ok {
			if n, err := strconv.Atoi(text); err != nil || n > maxIterations {
				return nil, driver.Errorf(driver.ClassAuth, "", "let the broker use fewer",
					"the broker asks for %.20q iterations, and %d are the most", text, maxIterations)
			}
		}
	}
	answer, err := l.Step(string(challenge))
	if err != nil {
		return nil, driver.Errorf(driver.ClassAuth, "", "check --user and --password; is this the right broker?",
			"the broker does not prove that it knows the password: %w", err)
	}
	return []byte(answer), nil
}

func (l scramLogin) accepted(data []byte) error {
	if len(data) > 0 && !l.Done() { // the proof may come with the outcome
		if _, err := l.answer(data); err != nil {
			return err
		}
	}
	if !l.Valid() {
		return driver.Errorf(driver.ClassAuth, "", "is this the right broker?",
			"the broker accepted the login without proving that it knows the password")
	}
	return nil
}

// loginEnd handles the end of the login.
func loginEnd(p *wire.Body, talk login) error {
	var f wire.SASLOutcome
	if err := f.Decode(&p.Fields); err != nil {
		return protocolError("a frame that cannot be read: %w", err)
	}
	switch f.Code {
	case wire.SASLOK:
		return talk.accepted(f.AdditionalData)
	case wire.SASLAuth:
		return driver.Errorf(driver.ClassAuth, "", "check --user and --password", "the broker does not accept the login")
	default:
		return driver.Errorf(driver.ClassAuth, "", lookAtBroker,
			"the broker could not judge the login, for reasons of its own (code %d)", f.Code)
	}
}

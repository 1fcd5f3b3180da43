package amqp

import (
	"slices"
	"strconv"
	"strings"

	"github.com/xdg-go/scram"

	wire "github.com/perfmq/perfmq/internal/wire/amqp"
	"github.com/perfmq/perfmq/pkg/driver"
)

// Names of mechanisms (RFC 4422, 4505, 4616, 7677; SCRAM-SHA-512 is SCRAM-SHA-256 with that hash). The values of the
// option sasl, other than auto, are these names in lower case.
const (
	mechAnonymous = "ANONYMOUS"
	mechPlain     = "PLAIN"
	mechExternal  = "EXTERNAL"
	mechSCRAM256  = "SCRAM-SHA-256"
	mechSCRAM512  = "SCRAM-SHA-512"
)

const (
	// maxRounds bounds the challenges of a login: SCRAM has two.
	maxRounds = 8
	// maxIterations bounds the work that a broker may demand: about a second.
	maxIterations = 1_000_000
)

// login performs the SASL layer (Security, section 5.3).
func (h *handshake) login() error {
	p, err := h.frame(wire.FrameSASL)
	if err != nil {
		return err
	}
	offer := wire.SASL{Kind: wire.DescMechanisms}
	if p.Kind != wire.DescMechanisms || offer.Decode(&p.Fields) != nil {
		return protocolError("no list of ways to log in")
	}
	mechanism, err := h.c.driver.mechanism(offer.Mechanisms)
	if err != nil {
		return err
	}
	first, talk, err := h.c.driver.begin(mechanism)
	if err != nil {
		return err
	}
	init := wire.SASL{Kind: wire.DescInit, Mechanism: mechanism, Data: first, Hostname: h.host.Host}
	if err := h.write(init.AppendFrame(nil)); err != nil {
		return err
	}
	for range maxRounds {
		if p, err = h.frame(wire.FrameSASL); err != nil {
			return err
		}
		switch {
		case p.Kind == wire.DescOutcome:
			return loginEnd(&p, talk)
		case p.Kind != wire.DescChallenge:
			return unexpected("frame of kind", uint64(p.Kind))
		case talk == nil:
			return unexpected("challenge of", mechanism)
		}
		challenge := wire.SASL{Kind: p.Kind}
		if err := challenge.Decode(&p.Fields); err != nil {
			return err
		}
		answer, err := answerChallenge(talk, challenge.Data)
		if err != nil {
			return err
		}
		response := wire.SASL{Kind: wire.DescResponse, Data: answer}
		if err := h.write(response.AppendFrame(nil)); err != nil {
			return err
		}
	}
	return unexpected("challenge of", mechanism)
}

// mechanism chooses among the mechanisms that the broker offers.
func (d *amqpDriver) mechanism(offered []string) (string, error) {
	c := &d.cfg
	wanted := []string{strings.ToUpper(c.Options.SASL)}
	switch {
	case c.Options.SASL == saslCBS: // the token follows, see authorize
		wanted = []string{mechAnonymous}
	case c.Options.SASL != saslAuto:
	case c.Target.User != "":
		wanted = []string{mechSCRAM512, mechSCRAM256, mechPlain} // the first, and so safest, one that the broker offers
	default:
		wanted = []string{mechAnonymous}
	}
	for _, name := range wanted {
		if slices.Contains(offered, name) {
			return name, nil
		}
	}
	return "", driver.Errorf(driver.ClassAuth, "", hintLogin,
		"the broker does not offer this way to log in: %s, only %.200q", strings.Join(wanted, " or "), offered)
}

// begin returns the first response of a mechanism, and the conversation that follows, or nil.
func (d *amqpDriver) begin(mechanism string) (first []byte, talk *scram.ClientConversation, err error) {
	target := &d.cfg.Target
	switch mechanism {
	case mechPlain:
		return []byte("\x00" + target.User + "\x00" + target.Password), nil, nil
	case mechAnonymous:
		return []byte("anonymous"), nil, nil
	case mechExternal: // the certificate identifies this client
		return []byte{}, nil, nil
	}
	hash := scram.SHA256
	if mechanism == mechSCRAM512 {
		hash = scram.SHA512
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	client := d.scram[mechanism]
	if client == nil {
		if client, err = hash.NewClient(target.User, target.Password, ""); err != nil {
			return nil, nil, driver.Errorf(driver.ClassAuth, "", "choose -o sasl=plain, or another password", "%s: %w",
				mechanism, err)
		}
		d.scram[mechanism] = client
	}
	talk = client.NewConversation()
	text, err := talk.Step("")
	return []byte(text), talk, err
}

// answerChallenge continues a login that does not reveal the password, and in which the broker proves that it knows it
// (RFC 5802).
func answerChallenge(talk *scram.ClientConversation, challenge []byte) ([]byte, error) {
	if talk.Done() {
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
	answer, err := talk.Step(string(challenge))
	if err != nil {
		return nil, driver.Errorf(driver.ClassAuth, "", hintPassword,
			"the broker did not prove that it knows the password: %w", err)
	}
	return []byte(answer), nil
}

// loginEnd handles the end of the login. A broker that has accepted it must have proven its identity as well, if talk
// is not nil.
func loginEnd(p *wire.Body, talk *scram.ClientConversation) error {
	f := wire.SASL{Kind: p.Kind}
	if err := f.Decode(&p.Fields); err != nil {
		return err
	}
	switch {
	case f.Code != wire.SASLOK:
		return driver.Errorf(driver.ClassAuth, "", hintPassword,
			"the broker does not accept the login (code %d)", f.Code)
	case talk == nil:
		return nil
	case len(f.Data) > 0 && !talk.Done(): // the proof may come with the outcome
		if _, err := answerChallenge(talk, f.Data); err != nil {
			return err
		}
	}
	if !talk.Valid() {
		return driver.Errorf(driver.ClassAuth, "", hintPassword,
			"the broker did not prove that it knows the password")
	}
	return nil
}

package amqp

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"github.com/xdg-go/scram"

	"github.com/perfmq/perfmq/internal/musttest"
	wire "github.com/perfmq/perfmq/internal/wire/amqp"
	"github.com/perfmq/perfmq/pkg/driver"
)

func TestMechanism(t *testing.T) {
	all := []string{"ANONYMOUS", "PLAIN", "EXTERNAL", "SCRAM-SHA-256", "SCRAM-SHA-512"}
	for _, c := range []struct {
		url, option string
		offered     []string
		want        string
	}{
		{"amqp://h", "auto", all, "ANONYMOUS"},
		{"amqp://u:p@h", "auto", all, "SCRAM-SHA-512"},
		{"amqp://u:p@h", "auto", []string{"PLAIN", "SCRAM-SHA-256"}, "SCRAM-SHA-256"},
		{"amqp://u:p@h", "auto", []string{"ANONYMOUS", "PLAIN"}, "PLAIN"},
		{"amqp://u:p@h", "auto", []string{"ANONYMOUS"}, ""}, // a user is not left out in silence if the broker asks for none
		{"amqp://u:p@h", "plain", all, "PLAIN"},
		{"amqp://u:p@h", "plain", []string{"SCRAM-SHA-256"}, ""},
		{"amqp://u:p@h", "anonymous", all, "ANONYMOUS"},
		{"amqp://u:p@h", "scram-sha-256", all, "SCRAM-SHA-256"},
		{"amqp://u:p@h", "scram-sha-512", all, "SCRAM-SHA-512"},
		{"amqps://h", "external", all, "EXTERNAL"},
		{"amqp://h", "auto", nil, ""},
	} {
		o := defaultOptions()
		o.SASL = c.option
		got, err := openDriver(t, driver.OpenOptions{URL: c.url, ConnectTimeout: 1, Options: o}).mechanism(c.offered)
		require.Equal(t, c.want, got, "%+v", c)
		if c.want == "" {
			require.Equal(t, driver.ClassAuth, driver.ClassOf(err), "%+v", c)
			require.NotEmpty(t, driver.HintOf(err))
		}
	}
}

// loginPeer offers one mechanism. It returns the driver's error on opening a producer.
func loginPeer(t *testing.T, user, password, mechanism string, talk func(p *peer, first []byte)) error {
	t.Helper()
	var err error
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		p.in = func() bool {
			p.write((&wire.SASL{Kind: wire.DescMechanisms, Mechanisms: []string{mechanism}}).AppendFrame(nil))
			f, err := p.reader.Next()
			if err != nil {
				return false
			}
			b := musttest.Get(wire.ParseBody(f.Body))(t)
			init := wire.SASL{Kind: b.Kind}
			require.NoError(t, init.Decode(&b.Fields))
			require.Equal(t, mechanism, init.Mechanism)
			talk(p, append([]byte(nil), init.Data...))
			return true
		}
		d := p.driver(driver.OpenOptions{User: user, Password: password})
		var producer driver.Producer
		if producer, err = d.Producer(t.Context(), producerSpec(1), newEnds()); err == nil {
			require.NoError(t, producer.Close(t.Context()))
		}
		require.NoError(t, d.Close(t.Context()))
	})
	return err
}

func (p *peer) outcome(code uint8, data []byte) {
	p.write((&wire.SASL{Kind: wire.DescOutcome, Code: code, Data: data}).AppendFrame(nil))
}

// challenge sends a challenge and returns the answer, or nil.
func (p *peer) challenge(text string) []byte {
	p.write((&wire.SASL{Kind: wire.DescChallenge, Data: []byte(text)}).AppendFrame(nil))
	f, err := p.reader.Next()
	if err != nil {
		return nil
	}
	b := musttest.Get(wire.ParseBody(f.Body))(p.t)
	response := wire.SASL{Kind: b.Kind}
	require.NoError(p.t, response.Decode(&b.Fields))
	return append([]byte(nil), response.Data...)
}

func TestPlainAndAnonymous(t *testing.T) {
	require.NoError(t, loginPeer(t, "joe", "p:w d", "PLAIN", func(p *peer, first []byte) {
		require.Equal(t, "\x00joe\x00p:w d", string(first))
		p.outcome(0, nil)
	}))
	require.NoError(t, loginPeer(t, "", "", "ANONYMOUS", func(p *peer, first []byte) {
		require.NotContains(t, string(first), "joe")
		p.outcome(0, nil)
	}))
	err := loginPeer(t, "joe", "secret", "PLAIN", func(p *peer, _ []byte) { p.outcome(1, nil) })
	require.Equal(t, driver.ClassAuth, driver.ClassOf(err), "%v", err)
	require.NotContains(t, err.Error(), "secret")
}

// TestSCRAM logs in to a server of the scram package, to one that does not know the password, and to some that cheat.
func TestSCRAM(t *testing.T) {
	for mechanism, hash := range map[string]scram.HashGeneratorFcn{mechSCRAM256: scram.SHA256, mechSCRAM512: scram.SHA512} {
		conversation := func(password string) *scram.ServerConversation {
			client := musttest.Get(hash.NewClient("joe", password, ""))(t)
			stored, err := client.GetStoredCredentialsWithError(scram.KeyFactors{Salt: "salt salt salt", Iters: 4096})
			require.NoError(t, err)
			server, err := hash.NewServer(func(string) (scram.StoredCredentials, error) { return stored, nil })
			require.NoError(t, err)
			return server.NewConversation()
		}
		talk := func(password string, end func(p *peer, last string, err error)) func(*peer, []byte) {
			return func(p *peer, first []byte) {
				server := conversation(password)
				challenge := musttest.Get(server.Step(string(first)))(t)
				last, err := server.Step(string(p.challenge(challenge)))
				end(p, last, err)
			}
		}
		t.Run(mechanism, func(t *testing.T) {
			require.NoError(t, loginPeer(t, "joe", "secret", mechanism, talk("secret", func(p *peer, last string, err error) {
				require.NoError(t, err)
				p.outcome(0, []byte(last))
			})), "the proof comes with the outcome")
			require.NoError(t, loginPeer(t, "joe", "secret", mechanism, talk("secret", func(p *peer, last string, err error) {
				require.NoError(t, err)
				require.Empty(t, p.challenge(last))
				p.outcome(0, nil)
			})), "the proof comes in a challenge")
			for what, cheat := range map[string]func(*peer, []byte){
				"a server that knows another password": talk("other", func(p *peer, _ string, err error) {
					require.Error(t, err)
					p.outcome(1, nil)
				}),
				"a server without a proof":    talk("secret", func(p *peer, _ string, _ error) { p.outcome(0, nil) }),
				"a server with a wrong proof": talk("secret", func(p *peer, _ string, _ error) { p.outcome(0, []byte("v=AAAA")) }),
				"a server that asks nothing":  func(p *peer, _ []byte) { p.outcome(0, nil) },
				"too much work": func(p *peer, first []byte) {
					nonce := string(first[len("n,,n=joe,r="):])
					p.challenge("r=" + nonce + "x,s=c2FsdA==,i=2000000000")
				},
				"no number of iterations": func(p *peer, first []byte) {
					nonce := string(first[len("n,,n=joe,r="):])
					p.challenge("r=" + nonce + "x,s=c2FsdA==,i=many")
				},
				"another nonce": func(p *peer, _ []byte) { p.challenge("r=mine,s=c2FsdA==,i=4096") },
			} {
				err := loginPeer(t, "joe", "secret", mechanism, cheat)
				require.Equal(t, driver.ClassAuth, driver.ClassOf(err), "%s: %v", what, err)
				require.NotEmpty(t, driver.HintOf(err), what)
				require.NotContains(t, err.Error(), "secret", what)
			}
		})
	}
}

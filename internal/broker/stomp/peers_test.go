package stomp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"testing"
	"time"

	gostomp "github.com/go-stomp/stomp/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/broker/store"
)

// TestPython has the Python client stomp.py send and receive.
func TestPython(t *testing.T) {
	python := ""
	for _, name := range []string{"/usr/bin/python3", "python3"} { // the one that Debian's package is for comes first
		if python == "" && exec.Command(name, "-c", "import stomp").Run() == nil {
			python = name
		}
	}
	require.NotEmpty(t, python, "this test needs python3 with stomp.py: apt-get install python3-stomp")
	for _, version := range []string{"1.0", "1.1", "1.2"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			s := serve(t, store.Config{}, Options{
				Authenticate: func(user, password string) bool { return user == "user" && password == "password" },
			})
			_, port, err := net.SplitHostPort(s.addr)
			require.NoError(t, err)
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, python, "testdata/peer.py", port, version)
			var words bytes.Buffer
			cmd.Stderr = &words
			out, err := cmd.Output()
			require.NoError(t, err, "%s%s", out, &words)
			var got struct {
				Many struct {
					Received, Receipts int
					Right              bool
					Text               string
				}
				Transactions, Durable []string
				Modes                 bool
			}
			require.NoError(t, json.Unmarshal(out, &got), "%s", out)
			assert.Equal(t, 1000, got.Many.Received)
			assert.Equal(t, 1000, got.Many.Receipts)
			assert.True(t, got.Many.Right)
			text := `a:b\c`
			if version == "1.0" {
				text = "a:b:" // it undoes escapes whatever the version
			}
			assert.Equal(t, text, got.Many.Text)
			assert.Equal(t, []string{"committed 0", "committed 1", "committed 2"}, got.Transactions)
			assert.Equal(t, []string{"news 0", "news 1", "news 2"}, got.Durable)
			for queue, settled := range map[string]uint64{"many": 1000, "tx": 2, "auto": 4, "client": 3} {
				assert.Equal(t, settled, queueStats(s.store, queue).Settled, queue)
			}
			individual := queueStats(s.store, "client-individual")
			if version == "1.0" {
				assert.EqualValues(t, 1, individual.Settled)
			} else {
				assert.EqualValues(t, 2, individual.Settled)
				assert.EqualValues(t, 1, individual.Redelivered)
			}
			assert.Empty(t, s.store.Destination(store.Address{Kind: store.KindTopic, Name: "news"}).Stats().Queues)
		})
	}
}

// TestGoStomp has the client of go-stomp send and receive.
func TestGoStomp(t *testing.T) {
	t.Parallel()
	for _, version := range []gostomp.Version{gostomp.V10, gostomp.V11, gostomp.V12} {
		t.Run(version.String(), func(t *testing.T) {
			t.Parallel()
			s := serve(t, store.Config{}, Options{})
			c, err := gostomp.Dial("tcp", s.addr, gostomp.ConnOpt.AcceptVersion(version), gostomp.ConnOpt.HeartBeat(time.Minute, time.Minute))
			require.NoError(t, err)
			sender, err := gostomp.Dial("tcp", s.addr, gostomp.ConnOpt.AcceptVersion(version)) // its receipts wait for who reads messages
			require.NoError(t, err)
			// Its Ack waits for whoever reads messages as well, so there must not be more of them than it buffers.
			sub, err := c.Subscribe("/queue/x", gostomp.AckClientIndividual, gostomp.SubscribeOpt.Header("prefetch-count", "8"))
			require.NoError(t, err)
			for i := range 200 {
				require.NoError(t, sender.Send("/queue/x", "text/plain", fmt.Appendf(nil, "body %d", i), gostomp.SendOpt.Receipt,
					gostomp.SendOpt.Header("key", `a:b\c`)))
			}
			for i := range 200 {
				select {
				case m := <-sub.C:
					require.NoError(t, m.Err)
					require.Equal(t, fmt.Sprintf("body %d", i), string(m.Body))
					if version != gostomp.V10 { // it escapes whatever the version
						require.Equal(t, `a:b\c`, m.Header.Get("key"))
					}
					require.NoError(t, c.Ack(m))
				case <-time.After(patience):
					t.Fatalf("%d messages came", i)
				}
			}
			tx := c.Begin()
			require.NoError(t, tx.Send("/queue/y", "", []byte("1")))
			require.NoError(t, tx.Abort())
			tx = c.Begin()
			require.NoError(t, tx.Send("/queue/y", "", []byte("2")))
			require.NoError(t, tx.Commit())
			// The library misses the receipt if it comes before it waits.
			if err := sub.Unsubscribe(); !errors.Is(err, &gostomp.ErrUnsubscribeReceiptTimeout) {
				require.NoError(t, err)
			}
			require.NoError(t, c.MustDisconnect()) // Disconnect misses its receipt in the same way
			require.NoError(t, sender.MustDisconnect())
			assert.EqualValues(t, 200, queueStats(s.store, "x").Settled)
			assert.EqualValues(t, 1, queueStats(s.store, "y").Stored)
		})
	}
}

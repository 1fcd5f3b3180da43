// Package stomptest receives messages over STOMP by another way than the driver's, for tests: with the frames of
// github.com/go-stomp/stomp/v3/frame.
package stomptest

import (
	"cmp"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-stomp/stomp/v3/frame"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/driver/drivertest"
)

// Broker is the broker to receive from.
type Broker struct {
	URL            string // stomp://HOST:PORT
	User, Password string
	// Destination returns the headers of SUBSCRIBE that name a destination.
	Destination func(driver.Destination) []string
}

// patience bounds each wait.
const patience = 30 * time.Second

// Inspect is a [drivertest.Config.Inspect].
func (b Broker) Inspect(t testing.TB, dest driver.Destination) func(n int) []drivertest.Header {
	t.Helper()
	conn, err := (&net.Dialer{Timeout: patience}).DialContext(t.Context(), "tcp", strings.TrimPrefix(b.URL, "stomp://"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	in, out := frame.NewReader(conn), frame.NewWriter(conn)
	ask := func(f *frame.Frame, answer string) {
		require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
		require.NoError(t, out.Write(f))
		require.Equal(t, answer, read(t, in).Command)
	}
	ask(frame.New(frame.CONNECT, frame.AcceptVersion, "1.2", frame.Host, "/", frame.Login, b.User, frame.Passcode,
		b.Password), frame.CONNECTED)
	subscribe := frame.New(frame.SUBSCRIBE, frame.Id, "1", frame.Ack, "auto", frame.Receipt, "subscribed")
	headers := b.Destination(dest)
	for i := 0; i < len(headers); i += 2 {
		subscribe.Header.Add(headers[i], headers[i+1])
	}
	ask(subscribe, frame.RECEIPT)
	return func(n int) (list []drivertest.Header) {
		require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
		for range n {
			f := read(t, in)
			require.Equal(t, frame.MESSAGE, f.Command)
			list = append(list, header(t, f))
		}
		_ = conn.Close()
		return list
	}
}

// read returns the next frame that is not a heart-beat.
func read(t testing.TB, in *frame.Reader) *frame.Frame {
	t.Helper()
	for {
		f, err := in.Read()
		require.NoError(t, err)
		if f != nil {
			require.NotEqual(t, frame.ERROR, f.Command, "%v %s", f.Header, f.Body)
			return f
		}
	}
}

// header returns the properties and standard headers of a MESSAGE.
func header(t testing.TB, f *frame.Frame) drivertest.Header {
	t.Helper()
	h := drivertest.Header{Properties: map[string]string{}, Priority: 4}
	for i := range f.Header.Len() {
		key, value := f.Header.GetAt(i)
		h.Properties[key] = value
	}
	_, bytes := h.Properties[frame.ContentLength]
	h.Text = !bytes
	h.Persistent = h.Properties["persistent"] == "true"
	h.Group = cmp.Or(h.Properties["JMSXGroupID"], h.Properties["_AMQ_GROUP_ID"]) // Artemis's name
	if text, ok := h.Properties["priority"]; ok {
		n, err := strconv.Atoi(text)
		require.NoError(t, err)
		h.Priority = n
	}
	if text, ok := h.Properties["expires"]; ok && text != "0" {
		ms, err := strconv.ParseInt(text, 10, 64)
		require.NoError(t, err)
		h.TTL = time.Until(time.UnixMilli(ms))
	}
	return h
}

// Slashed names a destination in RabbitMQ's form: /queue/NAME.
func Slashed(d driver.Destination) []string {
	return []string{frame.Destination, "/" + d.Kind.String() + "/" + d.Name}
}

// Whole names a destination in the embedded broker's form: queue://NAME.
func Whole(d driver.Destination) []string { return []string{frame.Destination, d.String()} }

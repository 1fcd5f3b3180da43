package brokerside

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/pkg/driver"
)

// asked opens an inspector of a server and asks it for queue://Q and topic://T.
func asked(t *testing.T, handler http.Handler, edit func(*Management)) ([]driver.DestinationCount, error) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	m := Management{URL: server.URL, User: "u", Password: "hunter2"}
	if edit != nil {
		edit(&m)
	}
	h := musttest.Get(m.Open())(t)
	t.Cleanup(h.Close)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	return h.Inspect(ctx, []driver.Destination{{Name: "Q"}, {Kind: driver.Topic, Name: "T"}})
}

func serves(pattern, text string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "u" || password != "hunter2" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = fmt.Fprint(w, text)
	})
	return mux
}

func TestRabbitMQ(t *testing.T) {
	t.Parallel()
	serve := func(queue string) http.Handler {
		mux := http.NewServeMux()
		mux.Handle("/api/overview", serves("/api/overview", `{"rabbitmq_version": "3.10.8"}`))
		mux.HandleFunc("/api/queues/", func(w http.ResponseWriter, r *http.Request) {
			if r.URL.EscapedPath() != "/api/queues/%2F/Q" {
				w.WriteHeader(http.StatusNotFound)
				return
			}
			_, _ = fmt.Fprint(w, queue)
		})
		return mux
	}
	list, err := asked(t, serve(`{"messages": 7, "consumers": 2, "message_stats": {"publish": 100, "ack": 90, "deliver_no_ack": 2, "get_no_ack": 1}}`), nil)
	require.NoError(t, err)
	require.Equal(t, []driver.DestinationCount{
		{Depth: driver.Counted(7), Added: driver.Counted(100), Acknowledged: driver.Counted(93), Consumers: driver.Counted(2)}, {},
	}, list, "a topic is not counted")
	server := httptest.NewServer(serve(`{"messages": 7, "consumers": 2}`))
	t.Cleanup(server.Close)
	h := musttest.Get((&Management{URL: server.URL, User: "u", Password: "hunter2"}).Open())(t)
	t.Cleanup(h.Close)
	for _, want := range []driver.Count{driver.Counted(0), {}, {}} {
		list := musttest.Get(h.Inspect(t.Context(), []driver.Destination{{Name: "Q"}}))(t)
		require.Equal(t, []driver.DestinationCount{
			{Depth: driver.Counted(7), Added: want, Acknowledged: want, Consumers: driver.Counted(2)},
		}, list, "nothing is counted of this queue: 0 where counting begins, not known later")
	}
	list = musttest.Get(asked(t, serve(`{"messages": 7}`), func(m *Management) { m.URL += "/?vhost=other" }))(t)
	require.Equal(t, driver.NoDestination(), list[0], "there is no such queue in another virtual host")
}

// artemisJolokia answers like Artemis: its Jolokia accepts the origin localhost alone.
func artemisJolokia(t *testing.T) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /console/jolokia/", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Origin") != "http://localhost" {
			_, _ = fmt.Fprint(w, `{"error": "Origin is not allowed to call this agent", "status": 403}`)
			return
		}
		var requests []jolokiaRequest
		assert.NoError(t, json.NewDecoder(r.Body).Decode(&requests))
		var answers []string
		for _, request := range requests {
			at := `org.apache.activemq.artemis:broker=*,component=addresses,address=`
			switch request.Bean {
			case artemisBroker:
				answers = append(answers, `{"status": 200, "value": ["org.apache.activemq.artemis:broker=\"x\""]}`)
			case activemqBroker:
				answers = append(answers, `{"status": 200, "value": []}`)
			case at + `"Q",subcomponent=queues,routing-type="anycast",queue=*`:
				answers = append(answers, `{"status": 200, "value": {"a": {"MessageCount": 3, "MessagesAdded": 10, "MessagesAcknowledged": 7, "ConsumerCount": 1},
					"b": {"MessageCount": 1, "MessagesAdded": 2, "MessagesAcknowledged": 1, "ConsumerCount": 0}}}`)
			case at + `"T",subcomponent=queues,routing-type="multicast",queue=*`:
				answers = append(answers, `{"status": 200, "value": {"a": {"MessageCount": 3, "MessagesAdded": 5, "MessagesAcknowledged": 2, "ConsumerCount": 1}}}`)
			case at + `"T"`:
				answers = append(answers, `{"status": 200, "value": {"a": {"RoutedMessageCount": 5, "UnRoutedMessageCount": 4}}}`)
			default:
				answers = append(answers, `{"status": 404, "error": "no such bean"}`)
			}
		}
		_, _ = fmt.Fprint(w, "["+strings.Join(answers, ",")+"]")
	})
	return mux
}

func TestArtemis(t *testing.T) {
	t.Parallel()
	want := []driver.DestinationCount{
		{Depth: driver.Counted(4), Added: driver.Counted(12), Acknowledged: driver.Counted(8), Consumers: driver.Counted(1)},
		{Depth: driver.Counted(3), Added: driver.Counted(9), Consumers: driver.Counted(1)},
	}
	for _, path := range []string{"", "/console/jolokia/"} {
		list, err := asked(t, artemisJolokia(t), func(m *Management) { m.URL += path })
		require.NoError(t, err, path)
		require.Equal(t, want, list, path)
	}
}

// TestAnswers: the error about any answer has a class and no password.
func TestAnswers(t *testing.T) {
	t.Parallel()
	var elsewhere atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	t.Cleanup(other.Close)
	const overview = "/api/overview"
	for name, test := range map[string]struct {
		handler http.Handler
		class   driver.Class
		says    string
	}{
		"nothing there":  {http.NotFoundHandler(), driver.ClassNotFound, "neither Jolokia nor RabbitMQ's management answers there"},
		"wrong password": {serves(overview, "{}"), driver.ClassNotFound, "neither"},
		"redirect":       {http.RedirectHandler(other.URL+"/x", http.StatusFound), driver.ClassOther, `answers "302 Found: http`},
		"an error":       {http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }), driver.ClassOther, "500 Internal"},
		"huge": {http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			text := []byte(strings.Repeat("9", 1<<20))
			for range 1 << 10 {
				if _, err := w.Write(text); err != nil {
					return
				}
			}
		}), driver.ClassTooLarge, "more than 4194304 bytes"},
		"a broken answer": {http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte("{"))
		}), driver.ClassConnectionLost, "read the answer: unexpected EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := asked(t, test.handler, nil)
			require.ErrorContains(t, err, test.says)
			require.Equal(t, test.class, driver.ClassOf(err))
			require.NotContains(t, err.Error(), "hunter2")
			require.Less(t, len(err.Error()), 600)
		})
	}
	_, err := asked(t, serves("/", "{}"), func(m *Management) { m.URL = strings.Replace(m.URL, "://", "://me:secret3@", 1) })
	require.Equal(t, driver.ClassAuth, driver.ClassOf(err))
	require.ErrorContains(t, err, "401 Unauthorized")
	require.NotContains(t, err.Error(), "secret3")
	t.Cleanup(func() { assert.Zero(t, elsewhere.Load(), "no redirect is followed") })
}

func TestCheckURL(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"http://localhost:8161": "", "https://u:p@h/console/jolokia": "", "http://[::1]:1/?vhost=a": "",
		"localhost:8161": "http://HOST", "amqp://h": "http://HOST", "http://": "http://HOST", "http://u:hunter2@h:port": "http://HOST", "": "http://HOST",
	} {
		err := CheckURL(text)
		if want == "" {
			require.NoError(t, err, text)
			continue
		}
		require.ErrorContains(t, err, want, text)
		require.NotContains(t, err.Error(), "hunter2")
	}
}

//go:build unix

package rocketmq_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	lib "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/admin"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
	"github.com/apache/rocketmq-client-go/v2/rlog"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/broker/rocketmq"
	"github.com/perfmq/perfmq/internal/broker/store"
)

// libraryEnv makes the test binary a client of rocketmq-client-go, which leaves goroutines behind and has data races of
// its own: so it gets a process.
const libraryEnv = "PERFMQ_TEST_ROCKETMQ_LIBRARY"

// quiet is a logger that says nothing.
type quiet struct{}

func (quiet) Debug(string, map[string]interface{})   {}
func (quiet) Info(string, map[string]interface{})    {}
func (quiet) Warning(string, map[string]interface{}) {}
func (quiet) Error(string, map[string]interface{})   {}
func (quiet) Fatal(string, map[string]interface{})   {}
func (quiet) Level(string)                           {}
func (quiet) OutputPath(string) error                { return nil }

func TestLibrary(t *testing.T) {
	for _, what := range []string{"sync", "async", "oneway", "batch", "transaction", "pull", "retry", "sql", "orderly", "admin"} {
		t.Run(what, func(t *testing.T) {
			b := start(t, store.Config{}, rocketmq.Options{TransactionCheckAfter: patientCheck, TransactionCheckInterval: 300 * time.Millisecond})
			createTopic(t, b, "LIB", 4)
			self, err := os.Executable()
			require.NoError(t, err)
			ctx, cancel := context.WithTimeout(t.Context(), 3*patience)
			defer cancel()
			cmd := exec.CommandContext(ctx, self)
			cmd.Env = append(os.Environ(), libraryEnv+"="+b.addr+" "+what, "GORACE=exitcode=0")
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)
			require.Contains(t, string(out), "done\n")
			require.Zero(t, b.Stats().BrokenFrames)
			if what == "transaction" {
				require.EqualValues(t, 60, b.Stats().Halves)
				require.EqualValues(t, 20, b.Stats().RolledBack)
				require.EqualValues(t, 40, b.Stats().Committed)
			}
			if what == "admin" {
				require.Nil(t, b.store.Find(store.Address{Kind: store.KindTopic, Name: "MADE"}), "it was deleted")
			}
			if what == "retry" {
				require.EqualValues(t, 5, b.Stats().GivenBack)
			}
		})
	}
}

// libraryClient sends n messages one way and receives what must come of that.
func libraryClient(addr, what string) error {
	rlog.SetLogger(quiet{})
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	if what == "admin" {
		return libraryAdmin(ctx, addr)
	}
	ns := primitive.NamesrvAddr{addr}
	const n = 60
	want := int64(n)
	if what == "transaction" {
		want = n / 3 * 2
	}
	if what == "sql" {
		want = n / 2
	}
	var got, again atomic.Int64
	done := make(chan struct{})
	handle := func(ctx context.Context, list ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		for _, m := range list {
			if what == "retry" && m.ReconsumeTimes == 0 && strings.HasSuffix(string(m.Body), "7") && again.Load() < 5 {
				again.Add(1)
				c, _ := primitive.GetConcurrentlyCtx(ctx)
				c.DelayLevelWhenNextConsume = 1
				return consumer.ConsumeRetryLater, nil
			}
			if !strings.HasPrefix(string(m.Body), "hello") || len(m.MsgId) != 32 {
				fmt.Printf("a message is wrong: %v\n", m)
			}
			if got.Add(1) == want {
				close(done)
			}
		}
		return consumer.ConsumeSuccess, nil
	}
	stop, err := libraryConsumer(ctx, ns, what, handle)
	if err != nil {
		return err
	}
	defer stop()
	if err := librarySend(ctx, ns, what, n); err != nil {
		return err
	}
	select {
	case <-done:
	case <-ctx.Done():
		return fmt.Errorf("%d of %d messages came, %d were given back", got.Load(), want, again.Load())
	}
	fmt.Println("done")
	return nil
}

func libraryConsumer(ctx context.Context, ns primitive.NamesrvAddr, what string, handle func(context.Context, ...*primitive.MessageExt) (consumer.ConsumeResult, error)) (func(), error) {
	selector := consumer.MessageSelector{}
	if what == "sql" {
		selector = consumer.MessageSelector{Type: consumer.SQL92, Expression: "number BETWEEN 0 AND 29 AND color = 'red'"}
	}
	if what == "pull" {
		c, err := lib.NewPullConsumer(consumer.WithGroupName("libgroup"), consumer.WithNsResolver(primitive.NewPassthroughResolver(ns)), consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset))
		if err != nil {
			return nil, err
		}
		if err := c.Subscribe("LIB", selector); err != nil {
			return nil, err
		}
		if err := c.Start(); err != nil {
			return nil, err
		}
		go func() {
			for ctx.Err() == nil {
				r, err := c.Poll(ctx, 500*time.Millisecond)
				if err == nil && r != nil {
					_, _ = handle(ctx, r.GetMsgList()...)
					c.ACK(ctx, r, consumer.ConsumeSuccess)
				}
			}
		}()
		return func() {}, nil
	}
	c, err := lib.NewPushConsumer(consumer.WithGroupName("libgroup"), consumer.WithNameServer(ns), consumer.WithConsumerOrder(what == "orderly"),
		consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset))
	if err != nil {
		return nil, err
	}
	if err := c.Subscribe("LIB", selector, handle); err != nil {
		return nil, err
	}
	return func() { _ = c.Shutdown() }, c.Start()
}

// third is a transaction's listener: of three messages one is committed at once, one when asked, and one is rolled
// back.
type third struct{}

func (third) ExecuteLocalTransaction(m *primitive.Message) primitive.LocalTransactionState {
	switch m.Body[len(m.Body)-1] % 3 {
	case 0:
		return primitive.CommitMessageState
	case 1:
		return primitive.RollbackMessageState
	default:
		return primitive.UnknowState
	}
}

func (third) CheckLocalTransaction(*primitive.MessageExt) primitive.LocalTransactionState {
	return primitive.CommitMessageState
}

func librarySend(ctx context.Context, ns primitive.NamesrvAddr, what string, n int) error {
	options := []producer.Option{producer.WithNameServer(ns), producer.WithGroupName("libproducers"), producer.WithInstanceName("libproducers"), producer.WithRetry(0), producer.WithSendMsgTimeout(patience)}
	if what == "transaction" {
		p, err := lib.NewTransactionProducer(third{}, options...)
		if err != nil {
			return err
		}
		if err := p.Start(); err != nil {
			return err
		}
		for i := range n {
			body := append([]byte("hello"), byte(i%3))
			if _, err := p.SendMessageInTransaction(ctx, primitive.NewMessage("LIB", body)); err != nil {
				return err
			}
		}
		return nil // it stays, to be asked
	}
	p, err := lib.NewProducer(options...)
	if err != nil {
		return err
	}
	if err := p.Start(); err != nil {
		return err
	}
	if what != "oneway" { // of which some would be lost with the connection: it ends with the process, when all have come
		defer func() { _ = p.Shutdown() }()
	}
	var all []*primitive.Message
	for i := range n {
		m := primitive.NewMessage("LIB", []byte(fmt.Sprintf("hello %d %s", i, strings.Repeat("x", i*200*(i%2))+fmt.Sprint(i%10))))
		m.WithProperty("number", fmt.Sprint(i/2))
		m.WithProperty("color", []string{"red", "blue"}[i%2])
		if what == "sql" {
			m.WithProperty("number", fmt.Sprint(i))
			m.WithProperty("color", "red")
		}
		all = append(all, m)
	}
	switch what {
	case "batch":
		for len(all) > 0 && err == nil {
			_, err = p.SendSync(ctx, all[:10]...)
			all = all[10:]
		}
		return err
	case "async":
		answers := make(chan error, n)
		for _, m := range all {
			if err := p.SendAsync(ctx, func(_ context.Context, _ *primitive.SendResult, err error) { answers <- err }, m); err != nil {
				return err
			}
		}
		for range all {
			if err := <-answers; err != nil {
				return err
			}
		}
		return nil
	case "oneway":
		for _, m := range all {
			if err := p.SendOneWay(ctx, m); err != nil {
				return err
			}
		}
		return nil
	}
	for _, m := range all {
		r, err := p.SendSync(ctx, m)
		if err != nil {
			return err
		}
		if r.Status != primitive.SendOK || len(r.OffsetMsgID) != 32 {
			return fmt.Errorf("answer %v", r)
		}
	}
	return nil
}

func libraryAdmin(ctx context.Context, addr string) error {
	a, err := admin.NewAdmin(admin.WithResolver(primitive.NewPassthroughResolver([]string{addr})))
	if err != nil {
		return err
	}
	if err := a.CreateTopic(ctx, admin.WithTopicCreate("MADE"), admin.WithBrokerAddrCreate(addr), admin.WithReadQueueNums(3), admin.WithWriteQueueNums(3)); err != nil {
		return err
	}
	queues, err := a.FetchPublishMessageQueues(ctx, "MADE")
	if err != nil || len(queues) != 3 {
		return fmt.Errorf("%d queues: %w", len(queues), err)
	}
	if _, err := a.GetAllSubscriptionGroup(ctx, addr, patience); err != nil {
		return err
	}
	if err := a.DeleteTopic(ctx, admin.WithTopicDelete("MADE"), admin.WithBrokerAddrDelete(addr), admin.WithNameSrvAddr([]string{addr})); err != nil {
		return err
	}
	fmt.Println("done")
	return nil
}

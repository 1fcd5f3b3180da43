//go:build unix

package brokertest

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"strconv"
	"time"

	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
)

// rocketManageTimeout bounds one question when the context does not.
const rocketManageTimeout = time.Minute

// CreateTopic creates a topic with that many queues and waits until the name
// server tells clients of it.
func (r *RocketMQ) CreateTopic(ctx context.Context, topic string, queues int) error {
	return r.createTopic(ctx, topic, queues, "")
}

func (r *RocketMQ) createTopic(ctx context.Context, topic string, queues int, attributes string) error {
	n := strconv.Itoa(queues)
	_, err := r.ask(ctx, r.Broker(), wire.ReqUpdateAndCreateTopic, map[string]string{
		"topic": topic, "defaultTopic": "TBW102", "readQueueNums": n, "writeQueueNums": n,
		"perm": "6", "topicFilterType": "SINGLE_TAG", "topicSysFlag": "0", "order": "false",
		"attributes": attributes,
	})
	if err != nil {
		return fmt.Errorf("create topic %s: %w", topic, err)
	}
	ctx, cancel := context.WithTimeout(ctx, rocketManageTimeout)
	defer cancel()
	err = poll(ctx, 20*time.Millisecond, func() (bool, error) {
		_, err := r.ask(ctx, r.NameServer(), wire.ReqGetRouteInfoByTopic, map[string]string{"topic": topic})
		return err == nil, nil // not known yet
	})
	if err != nil {
		return fmt.Errorf("wait for topic %s to be known to the name server: %w", topic, err)
	}
	return nil
}

// DeleteTopic deletes a topic with its messages.
func (r *RocketMQ) DeleteTopic(ctx context.Context, topic string) error {
	fields := map[string]string{"topic": topic}
	_, err := r.ask(ctx, r.Broker(), wire.ReqDeleteTopicInBroker, fields)
	if _, also := r.ask(ctx, r.NameServer(), wire.ReqDeleteTopicInNamesrv, fields); err != nil || also != nil {
		return fmt.Errorf("delete topic %s: %w", topic, errors.Join(err, also))
	}
	return nil
}

// TopicMessages returns the number of messages that the topic ever got: the sum of the next offsets of its queues. A
// message of a batch counts as one.
func (r *RocketMQ) TopicMessages(ctx context.Context, topic string) (int64, error) {
	body, err := r.ask(ctx, r.Broker(), wire.ReqGetTopicStatsInfo, map[string]string{"topic": topic})
	if err != nil {
		return 0, fmt.Errorf("read the counters of topic %s: %w", topic, err)
	}
	return sumOf(body, "maxOffset")
}

// Consumed returns the number of messages of a topic that a consumer group has settled: the sum of the offsets that
// it committed. Unlike in [RocketMQ.Delivered], messages that a consumer was sent and gave up unread do not count
// twice.
func (r *RocketMQ) Consumed(ctx context.Context, group, topic string) (int64, error) {
	body, err := r.ask(ctx, r.Broker(), wire.ReqGetConsumeStats, map[string]string{"consumerGroup": group, "topic": topic})
	if err != nil {
		return 0, fmt.Errorf("read the offsets of group %s: %w", group, err)
	}
	return sumOf(body, "consumerOffset")
}

// sumOf adds up a field of the queues in an answer, which has objects as keys, so
// that it is no JSON.
func sumOf(body []byte, field string) (sum int64, err error) {
	for _, m := range regexp.MustCompile(`"`+field+`":(\d+)`).FindAllSubmatch(body, -1) {
		n, err := strconv.ParseInt(string(m[1]), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("read the counter %s: %w", field, err)
		}
		sum += n
	}
	return sum, nil
}

// Delivered returns the number of messages that the broker has delivered to consumers since its start, of all topics
// but its own internal ones. A broker that has just started answers with an error until it has taken its first
// sample, within a second.
func (r *RocketMQ) Delivered(ctx context.Context) (int64, error) {
	const counter = "msgGetTotalTodayNow"
	ctx, cancel := context.WithTimeout(ctx, rocketManageTimeout)
	defer cancel()
	var body []byte
	err := poll(ctx, 50*time.Millisecond, func() (done bool, err error) {
		body, err = r.ask(ctx, r.Broker(), wire.ReqGetBrokerRuntimeInfo, nil)
		var refused *refusedError
		if errors.As(err, &refused) && refused.code == wire.ResSystemError {
			return false, nil
		}
		return true, err
	})
	if err != nil {
		return 0, fmt.Errorf("read the broker's counters: %w", err)
	}
	var info struct{ Table map[string]string }
	if err := json.Unmarshal(body, &info); err != nil {
		return 0, fmt.Errorf("read the broker's counters: %w", err)
	}
	n, err := strconv.ParseInt(info.Table[counter], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read the broker's counter %s: %w", counter, err)
	}
	return n, nil
}

// ask sends one request over a connection of its own, and returns
// the body of the answer. An answer that is not success is an error.
func (r *RocketMQ) ask(ctx context.Context, address string, code int, fields map[string]string, body ...byte) (
	[]byte, error,
) {
	ctx, cancel := context.WithTimeout(ctx, rocketManageTimeout)
	defer cancel()
	var w wire.Writer
	w.Begin(code, 0, 1, "")
	for key, value := range fields {
		w.Text(key, value)
	}
	w.End(len(body))
	w.B = append(w.B, body...)
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	deadline, _ := ctx.Deadline()
	if err := conn.SetDeadline(deadline); err != nil {
		return nil, err
	}
	if _, err := conn.Write(w.B); err != nil {
		return nil, err
	}
	var size [4]byte
	if _, err := io.ReadFull(conn, size[:]); err != nil {
		return nil, err
	}
	frame, err := io.ReadAll(io.LimitReader(conn, int64(binary.BigEndian.Uint32(size[:]))))
	if err != nil {
		return nil, err
	}
	var answer wire.Frame
	if err := answer.Parse(frame); err != nil {
		return nil, fmt.Errorf("parse the answer: %w", err)
	}
	if answer.Code != wire.ResSuccess {
		return nil, &refusedError{code: answer.Code, remark: string(answer.Remark)}
	}
	return answer.Body, nil
}

// refusedError is an answer that is not success.
type refusedError struct {
	code   int
	remark string
}

func (e *refusedError) Error() string { return fmt.Sprintf("answer code %d: %s", e.code, e.remark) }

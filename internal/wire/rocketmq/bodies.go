package rocketmq

import (
	"encoding/json"
	"fmt"
	"regexp"
)

// MaxJSON is the largest body in JSON that is read, in bytes: the decoded values take many times its memory.
const MaxJSON = 1 << 20

// UnmarshalJSON reads a body in JSON as RocketMQ writes it: name servers before 4.9.4, and some tables still, have
// whole numbers as keys without quotes. One of more than MaxJSON bytes is not read.
func UnmarshalJSON(b []byte, v any) error {
	if len(b) > MaxJSON {
		return fmt.Errorf("it has %d bytes; at most %d are accepted", len(b), MaxJSON)
	}
	if err := json.Unmarshal(b, v); err == nil {
		return nil
	}
	return json.Unmarshal(quoteKeys(b), v)
}

// quoteKeys puts quotes around numbers that are keys.
func quoteKeys(b []byte) []byte {
	textOrKey := regexp.MustCompile(`"(?:[^"\\]|\\.)*"|[{,]-?\d+:`)
	return textOrKey.ReplaceAllFunc(b, func(m []byte) []byte {
		if m[0] == '"' {
			return m
		}
		return fmt.Appendf(nil, `%c"%s":`, m[0], m[1:len(m)-1])
	})
}

// Route is where the queues of a topic are (TopicRouteData).
type Route struct {
	Brokers []BrokerData        `json:"brokerDatas"`
	Filters map[string][]string `json:"filterServerTable"`
	Queues  []QueueData         `json:"queueDatas"`
}

// BrokerData is the brokers of one name (BrokerData).
type BrokerData struct {
	Cluster   string            `json:"cluster"`
	Name      string            `json:"brokerName"`
	Addresses map[string]string `json:"brokerAddrs"` // by number, see MasterID
}

// QueueData is the queues of a topic on the brokers of one name (QueueData).
type QueueData struct {
	Broker  string `json:"brokerName"`
	Read    int    `json:"readQueueNums"`
	Write   int    `json:"writeQueueNums"`
	Perm    int    `json:"perm"` // PermRead, PermWrite
	SysFlag int    `json:"topicSysFlag"`
}

// Cluster is a name server's list of its brokers (ClusterInfo).
type Cluster struct {
	Brokers  map[string]BrokerData `json:"brokerAddrTable"`
	Clusters map[string][]string   `json:"clusterAddrTable"`
}

// Heartbeat is a client's report of its groups (HeartbeatData).
type Heartbeat struct {
	ClientID  string         `json:"clientID"`
	Producers []ProducerData `json:"producerDataSet"`
	Consumers []ConsumerData `json:"consumerDataSet"`
}

// ProducerData is a group of producers (ProducerData).
type ProducerData struct {
	Group string `json:"groupName"`
}

// ConsumerData is a consumer's group (ConsumerData).
type ConsumerData struct {
	Group         string         `json:"groupName"`
	Type          string         `json:"consumeType"`      // ConsumeType
	Model         string         `json:"messageModel"`     // MessageModel
	From          string         `json:"consumeFromWhere"` // ConsumeFromWhere
	Subscriptions []Subscription `json:"subscriptionDataSet"`
	UnitMode      bool           `json:"unitMode"`
}

// Subscription is a group's choice of the messages of a topic (SubscriptionData).
type Subscription struct {
	ClassFilter bool     `json:"classFilterMode"`
	Topic       string   `json:"topic"`
	Expression  string   `json:"subString"`
	Tags        []string `json:"tagsSet"`
	Codes       []int32  `json:"codeSet"` // of the tags, see HashCode
	Version     int64    `json:"subVersion"`
	Kind        string   `json:"expressionType"` // KindTag, KindSQL
}

// Kinds of expressions (ExpressionType).
const (
	KindTag = "TAG"
	KindSQL = "SQL92"
)

// ClientCheck is the body of CHECK_CLIENT_CONFIG (CheckClientRequestBody).
type ClientCheck struct {
	ClientID     string       `json:"clientId"`
	Group        string       `json:"group"`
	Namespace    string       `json:"namespace"`
	Subscription Subscription `json:"subscriptionData"`
}

// Queue names a queue (MessageQueue).
type Queue struct {
	Topic  string `json:"topic"`
	Broker string `json:"brokerName"`
	Queue  int    `json:"queueId"`
}

// Lock is the body of LOCK_BATCH_MQ and UNLOCK_BATCH_MQ (LockBatchRequestBody, UnlockBatchRequestBody).
type Lock struct {
	Group    string  `json:"consumerGroup"`
	ClientID string  `json:"clientId"`
	Queues   []Queue `json:"mqSet"`
}

// Locked is the answer to LOCK_BATCH_MQ (LockBatchResponseBody).
type Locked struct {
	Queues []Queue `json:"lockOKMQSet"`
}

// Consumers is the answer to GET_CONSUMER_LIST_BY_GROUP (GetConsumerListByGroupResponseBody).
type Consumers struct {
	ClientIDs []string `json:"consumerIdList"`
}

// Groups is the answer to QUERY_TOPIC_CONSUME_BY_WHO (GroupList).
type Groups struct {
	Groups []string `json:"groupList"`
}

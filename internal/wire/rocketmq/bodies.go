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

// How a header is encoded (SerializeType). Brokers answer in the request's codec, but sends always in JSON.
const (
	JSON   byte = 0
	Binary byte = 1
)

const (
	// languageGo is LanguageCode.GO.
	languageGo = 9
	// Version is the version that our frames tell: MQVersion.Version.V5_0_0. Name servers answer such clients in
	// standard JSON.
	Version = 413
	// Version5 is the first version of RocketMQ 5: MQVersion.Version.V5_0_0_SNAPSHOT.
	Version5 = 412
)

// Flags of frames (RemotingCommand.markResponseType, markOnewayRPC).
const (
	FlagAnswer = 1 << 0
	FlagOneWay = 1 << 1 // no answer is wanted
)

// Codes of requests (RequestCode).
const (
	ReqSendMessage                      = 10
	ReqPullMessage                      = 11
	ReqQueryConsumerOffset              = 14
	ReqUpdateConsumerOffset             = 15
	ReqUpdateAndCreateTopic             = 17
	ReqGetBrokerConfig                  = 26
	ReqGetBrokerRuntimeInfo             = 28
	ReqGetMaxOffset                     = 30
	ReqGetMinOffset                     = 31
	ReqHeartBeat                        = 34
	ReqUnregisterClient                 = 35
	ReqConsumerSendMsgBack              = 36
	ReqEndTransaction                   = 37
	ReqGetConsumerListByGroup           = 38
	ReqCheckTransactionState            = 39
	ReqNotifyConsumerIDsChanged         = 40
	ReqLockBatchMQ                      = 41
	ReqUnlockBatchMQ                    = 42
	ReqCheckClientConfig                = 46
	ReqGetRouteInfoByTopic              = 105
	ReqGetBrokerClusterInfo             = 106
	ReqUpdateAndCreateSubscriptionGroup = 200
	ReqGetTopicStatsInfo                = 202
	ReqDeleteSubscriptionGroup          = 207
	ReqGetConsumeStats                  = 208
	ReqDeleteTopicInBroker              = 215
	ReqDeleteTopicInNamesrv             = 216
	ReqQueryTopicConsumeByWho           = 300
	ReqSendMessageV2                    = 310
	ReqSendBatchMessage                 = 320
	ReqSendReplyMessage                 = 324
	ReqSendReplyMessageV2               = 325
	ReqPushReplyMessageToClient         = 326
	ReqGetSubscriptionGroupConfig       = 352
)

// Codes of answers (ResponseCode, RemotingSysResponseCode).
const (
	ResSuccess                   = 0
	ResSystemError               = 1
	ResSystemBusy                = 2
	ResRequestCodeNotSupported   = 3
	ResFlushDiskTimeout          = 10
	ResSlaveNotAvailable         = 11
	ResFlushSlaveTimeout         = 12
	ResMessageIllegal            = 13
	ResServiceNotAvailable       = 14
	ResNoPermission              = 16
	ResTopicNotExist             = 17
	ResPullNotFound              = 19 // there is nothing new
	ResPullRetryImmediately      = 20
	ResPullOffsetMoved           = 21
	ResQueryNotFound             = 22
	ResSubscriptionParseFailed   = 23
	ResSubscriptionNotExist      = 24
	ResSubscriptionNotLatest     = 25
	ResSubscriptionGroupNotExist = 26
	ResFlowControl               = 215
	ResGoAway                    = 1500
)

// Flags of pulls (PullSysFlag).
const (
	PullCommitOffset = 1 << iota // commitOffset holds
	PullSuspend                  // to be held until there is something
	PullSubscription             // the filter comes along
)

// Permissions of topics (PermName).
const (
	PermWrite = 1 << 1
	PermRead  = 1 << 2
)

// Flags of messages (MessageSysFlag).
const (
	SysCompressed      = 1 << 0
	SysPrepared        = 1 << 2 // half a message
	SysCommit          = 2 << 2
	SysRollback        = 3 << 2
	SysTransaction     = 3 << 2 // the bits of these three
	SysBornHostV6      = 1 << 4
	SysStoreHostV6     = 1 << 5
	SysCompressionZlib = 3 << 8 // of the compression types; 0 is zlib, too
	SysCompression     = 7 << 8 // the bits of all of them
)

// Names of properties (MessageConst).
const (
	PropTags          = "TAGS"
	PropUniqueKey     = "UNIQ_KEY" // the id that the client gave it
	PropWait          = "WAIT"
	PropDelayLevel    = "DELAY"
	PropTimerDelayMs  = "TIMER_DELAY_MS"
	PropPrepared      = "TRAN_MSG"
	PropProducerGroup = "PGROUP"
	PropRetryTopic    = "RETRY_TOPIC"
	PropOriginID      = "ORIGIN_MESSAGE_ID"
	PropShardingKey   = "__SHARDINGKEY" // the Go library has another
	PropCluster       = "CLUSTER"       // the broker's, as it stored the message

	// Of requests and replies.
	PropCorrelationID = "CORRELATION_ID"
	PropReplyTo       = "REPLY_TO_CLIENT" // the requester's client ID
	PropReplyTTL      = "TTL"             // of the request, in milliseconds
	PropMessageType   = "MSG_TYPE"        // ReplyType in a reply
	PropPushReplyTime = "PUSH_REPLY_TIME"
)

const (
	// RetryPrefix begins the name of the topic of messages that a group gave back (MixAll.RETRY_GROUP_TOPIC_PREFIX).
	RetryPrefix = "%RETRY%"
	// DeadPrefix begins the name of the topic of messages that a group gave up (MixAll.DLQ_GROUP_TOPIC_PREFIX).
	DeadPrefix = "%DLQ%"
	// ReplySuffix ends the name of a cluster's topic for replies (MixAll.getReplyTopic).
	ReplySuffix = "_REPLY_TOPIC"
	// ReplyType is the type of replies (MixAll.REPLY_MESSAGE_FLAG).
	ReplyType = "reply"
	// DefaultTopic is the topic from which new topics inherit settings and route
	// (TopicValidator.AUTO_CREATE_TOPIC_KEY_TOPIC).
	DefaultTopic = "TBW102"
	// MasterID is the number of the broker that takes messages, among the brokers of one name (MixAll.MASTER_ID).
	MasterID = "0"
)

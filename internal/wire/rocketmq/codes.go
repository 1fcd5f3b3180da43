package rocketmq

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
)

const (
	// RetryPrefix begins the name of the topic of messages that a group gave back (MixAll.RETRY_GROUP_TOPIC_PREFIX).
	RetryPrefix = "%RETRY%"
	// DeadPrefix begins the name of the topic of messages that a group gave up (MixAll.DLQ_GROUP_TOPIC_PREFIX).
	DeadPrefix = "%DLQ%"
	// DefaultTopic is the topic from which new topics inherit settings and route
	// (TopicValidator.AUTO_CREATE_TOPIC_KEY_TOPIC).
	DefaultTopic = "TBW102"
	// MasterID is the number of the broker that takes messages, among the brokers of one name (MixAll.MASTER_ID).
	MasterID = "0"
)

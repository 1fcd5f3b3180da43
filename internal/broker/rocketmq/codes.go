package rocketmq

// The remoting protocol, as of org.apache.rocketmq.remoting.protocol (RemotingCommand, RocketMQSerializable).
const (
	codecJSON   = 0
	codecBinary = 1

	languageGo = 9
	// version is what we say to be: MQVersion.V5_0_0.
	version = 413

	flagAnswer = 1 // bit 0
	flagOneWay = 2 // bit 1: no answer wanted
)

// Request codes (RequestCode).
const (
	reqSend             = 10
	reqPull             = 11
	reqQueryOffset      = 14
	reqUpdateOffset     = 15
	reqCreateTopic      = 17
	reqRuntimeInfo      = 28
	reqSearchOffset     = 29
	reqMaxOffset        = 30
	reqMinOffset        = 31
	reqEarliestTime     = 32
	reqViewMessage      = 33
	reqHeartbeat        = 34
	reqUnregister       = 35
	reqSendBack         = 36
	reqEndTransaction   = 37
	reqConsumerList     = 38
	reqCheckTransaction = 39
	reqConsumersChanged = 40
	reqLockQueues       = 41
	reqUnlockQueues     = 42
	reqCheckClient      = 46
	reqRoute            = 105
	reqClusterInfo      = 106
	reqCreateGroup      = 200
	reqListGroups       = 201
	reqTopicStats       = 202
	reqListTopics       = 206
	reqDeleteGroup      = 207
	reqConsumeStats     = 208
	reqDeleteInBroker   = 215
	reqDeleteInNamesrv  = 216
	reqTopicGroups      = 300
	reqSendV2           = 310
	reqSendBatch        = 320
	reqLitePull         = 361
)

// Answer codes (ResponseCode, RemotingSysResponseCode).
const (
	codeSuccess        = 0
	codeError          = 1
	codeBusy           = 2
	codeNotSupported   = 3
	codeIllegal        = 13
	codeNoPermission   = 16
	codeNoTopic        = 17
	codeNotFound       = 19 // of a pull: nothing new
	codeRetryNow       = 20
	codeOffsetMoved    = 21
	codeQueryNotFound  = 22
	codeParseFailed    = 23
	codeNoSubscription = 24
	codeOldFilter      = 25
)

// Flags of messages (MessageSysFlag).
const (
	sysCompressed  = 1
	sysCommit      = 2 << 2
	sysRollback    = 3 << 2
	sysTransaction = 3 << 2 // the bits of both and of half messages
	sysHostsV6     = 3 << 4 // of born and store host
	sysCompression = 7 << 8
	sysZlib        = 3 << 8
)

// Flags of pulls (PullSysFlag).
const (
	pullCommits = 1 << iota // commitOffset holds
	pullWaits               // hold it until there is something
	pullFilters             // the filter comes along
)

// Names of properties (MessageConst).
const (
	propTags        = "TAGS"
	propKeys        = "KEYS"
	propUnique      = "UNIQ_KEY"
	propDelayLevel  = "DELAY"
	propTimerMillis = "TIMER_DELAY_MS"
	propTimerSecs   = "TIMER_DELAY_SEC"
	propTimerAt     = "TIMER_DELIVER_MS"
	propHalf        = "TRAN_MSG"
	propGroup       = "PGROUP"
	propRetryTopic  = "RETRY_TOPIC"
	propOrigin      = "ORIGIN_MESSAGE_ID"
	propSharding    = "__SHARDINGKEY"
	propWait        = "WAIT"
	propCorrelation = "CORRELATION_ID"
	// Ours, for what other protocols have and RocketMQ has not.
	propReplyTo     = "REPLY_TO"
	propContentType = "CONTENT_TYPE"
)

const (
	nameEnd     = 1 // between name and value of a property
	propertyEnd = 2

	retryPrefix = "%RETRY%"
	deadPrefix  = "%DLQ%"
	// defaultTopic is the topic from whose route clients choose a queue of a topic that does not exist yet.
	defaultTopic = "TBW102"

	brokerName  = "perfmq"
	clusterName = "DefaultCluster"
)

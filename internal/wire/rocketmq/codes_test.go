package rocketmq_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
)

// TestConstants compares codes, flags and names with RocketMQ's own classes, see testdata/Golden.java.
func TestConstants(t *testing.T) {
	t.Parallel()
	golden := readGolden(t)
	for kind, list := range map[string]map[string]any{
		"request": {
			"SEND_MESSAGE": wire.ReqSendMessage, "PULL_MESSAGE": wire.ReqPullMessage, "QUERY_CONSUMER_OFFSET": wire.ReqQueryConsumerOffset,
			"UPDATE_CONSUMER_OFFSET": wire.ReqUpdateConsumerOffset, "UPDATE_AND_CREATE_TOPIC": wire.ReqUpdateAndCreateTopic,
			"GET_BROKER_CONFIG": wire.ReqGetBrokerConfig, "GET_BROKER_RUNTIME_INFO": wire.ReqGetBrokerRuntimeInfo,
			"GET_MAX_OFFSET": wire.ReqGetMaxOffset,
			"GET_MIN_OFFSET": wire.ReqGetMinOffset,
			"HEART_BEAT":     wire.ReqHeartBeat, "UNREGISTER_CLIENT": wire.ReqUnregisterClient,
			"CONSUMER_SEND_MSG_BACK": wire.ReqConsumerSendMsgBack, "END_TRANSACTION": wire.ReqEndTransaction,
			"GET_CONSUMER_LIST_BY_GROUP": wire.ReqGetConsumerListByGroup, "CHECK_TRANSACTION_STATE": wire.ReqCheckTransactionState,
			"NOTIFY_CONSUMER_IDS_CHANGED": wire.ReqNotifyConsumerIDsChanged, "LOCK_BATCH_MQ": wire.ReqLockBatchMQ,
			"UNLOCK_BATCH_MQ": wire.ReqUnlockBatchMQ, "CHECK_CLIENT_CONFIG": wire.ReqCheckClientConfig,
			"GET_ROUTEINFO_BY_TOPIC": wire.ReqGetRouteInfoByTopic, "GET_BROKER_CLUSTER_INFO": wire.ReqGetBrokerClusterInfo,
			"UPDATE_AND_CREATE_SUBSCRIPTIONGROUP": wire.ReqUpdateAndCreateSubscriptionGroup,
			"GET_TOPIC_STATS_INFO":                wire.ReqGetTopicStatsInfo, "DELETE_SUBSCRIPTIONGROUP": wire.ReqDeleteSubscriptionGroup, "GET_CONSUME_STATS": wire.ReqGetConsumeStats,
			"DELETE_TOPIC_IN_BROKER": wire.ReqDeleteTopicInBroker, "DELETE_TOPIC_IN_NAMESRV": wire.ReqDeleteTopicInNamesrv,
			"QUERY_TOPIC_CONSUME_BY_WHO": wire.ReqQueryTopicConsumeByWho, "SEND_MESSAGE_V2": wire.ReqSendMessageV2,
			"SEND_BATCH_MESSAGE": wire.ReqSendBatchMessage, "GET_SUBSCRIPTIONGROUP_CONFIG": wire.ReqGetSubscriptionGroupConfig,
		},
		"answer": {
			"SUCCESS": wire.ResSuccess, "SYSTEM_ERROR": wire.ResSystemError, "SYSTEM_BUSY": wire.ResSystemBusy,
			"REQUEST_CODE_NOT_SUPPORTED": wire.ResRequestCodeNotSupported, "FLUSH_DISK_TIMEOUT": wire.ResFlushDiskTimeout,
			"SLAVE_NOT_AVAILABLE": wire.ResSlaveNotAvailable, "FLUSH_SLAVE_TIMEOUT": wire.ResFlushSlaveTimeout,
			"MESSAGE_ILLEGAL": wire.ResMessageIllegal, "SERVICE_NOT_AVAILABLE": wire.ResServiceNotAvailable,
			"NO_PERMISSION": wire.ResNoPermission, "TOPIC_NOT_EXIST": wire.ResTopicNotExist, "PULL_NOT_FOUND": wire.ResPullNotFound,
			"PULL_RETRY_IMMEDIATELY": wire.ResPullRetryImmediately, "PULL_OFFSET_MOVED": wire.ResPullOffsetMoved,
			"QUERY_NOT_FOUND": wire.ResQueryNotFound, "SUBSCRIPTION_PARSE_FAILED": wire.ResSubscriptionParseFailed,
			"SUBSCRIPTION_NOT_EXIST": wire.ResSubscriptionNotExist, "SUBSCRIPTION_NOT_LATEST": wire.ResSubscriptionNotLatest,
			"SUBSCRIPTION_GROUP_NOT_EXIST": wire.ResSubscriptionGroupNotExist, "FLOW_CONTROL": wire.ResFlowControl, "GO_AWAY": wire.ResGoAway,
		},
		"sysflag": {
			"COMPRESSED_FLAG": wire.SysCompressed, "TRANSACTION_PREPARED_TYPE": wire.SysPrepared, "TRANSACTION_COMMIT_TYPE": wire.SysCommit,
			"TRANSACTION_ROLLBACK_TYPE": wire.SysRollback, "BORNHOST_V6_FLAG": wire.SysBornHostV6,
			"STOREHOSTADDRESS_V6_FLAG": wire.SysStoreHostV6, "COMPRESSION_ZLIB_TYPE": wire.SysCompressionZlib,
			"COMPRESSION_TYPE_COMPARATOR": wire.SysCompression,
		},
		"pull flag": {
			"FLAG_COMMIT_OFFSET": wire.PullCommitOffset, "FLAG_SUSPEND": wire.PullSuspend, "FLAG_SUBSCRIPTION": wire.PullSubscription,
		},
		"permission": {"PERM_READ": wire.PermRead, "PERM_WRITE": wire.PermWrite},
		"property": {
			"PROPERTY_TAGS": wire.PropTags, "PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX": wire.PropUniqueKey,
			"PROPERTY_WAIT_STORE_MSG_OK": wire.PropWait, "PROPERTY_DELAY_TIME_LEVEL": wire.PropDelayLevel,
			"PROPERTY_TIMER_DELAY_MS":       wire.PropTimerDelayMs,
			"PROPERTY_TRANSACTION_PREPARED": wire.PropPrepared,
			"PROPERTY_PRODUCER_GROUP":       wire.PropProducerGroup, "PROPERTY_RETRY_TOPIC": wire.PropRetryTopic,
			"PROPERTY_ORIGIN_MESSAGE_ID": wire.PropOriginID, "PROPERTY_SHARDING_KEY": wire.PropShardingKey,
		},
	} {
		for name, ours := range list {
			require.Contains(t, golden, kind+" "+name)
			assert.Equal(t, string(golden[kind+" "+name]), fmt.Sprint(ours), name)
		}
	}
}

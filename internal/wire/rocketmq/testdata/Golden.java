import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashMap;
import java.util.TreeMap;
import org.apache.rocketmq.acl.common.AclUtils;
import org.apache.rocketmq.common.UtilAll;
import org.apache.rocketmq.common.compression.CompressionType;
import org.apache.rocketmq.common.compression.CompressorFactory;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageConst;
import org.apache.rocketmq.common.message.MessageDecoder;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageExtBrokerInner;
import org.apache.rocketmq.common.message.MessageVersion;
import org.apache.rocketmq.common.constant.PermName;
import org.apache.rocketmq.common.sysflag.MessageSysFlag;
import org.apache.rocketmq.common.sysflag.PullSysFlag;
import org.apache.rocketmq.remoting.protocol.LanguageCode;
import org.apache.rocketmq.remoting.protocol.RemotingCommand;
import org.apache.rocketmq.remoting.protocol.RequestCode;
import org.apache.rocketmq.remoting.protocol.ResponseCode;
import org.apache.rocketmq.remoting.protocol.SerializeType;
import org.apache.rocketmq.store.MessageExtEncoder;
import org.apache.rocketmq.store.config.MessageStoreConfig;

/** Prints golden bytes as RocketMQ's own classes make them: java -cp 'DISTRIBUTION/lib/*' Golden.java | grep -E '^[^|]*: [0-9a-f]*$' > rocketmq.golden */
public class Golden {
    static void print(String name, byte[] b) {
        StringBuilder s = new StringBuilder(name).append(": ");
        for (byte x : b) {
            s.append(String.format("%02x", x));
        }
        System.out.println(s);
    }

    static void print(String name, ByteBuffer b) {
        byte[] all = new byte[b.remaining()];
        b.get(all);
        print(name, all);
    }

    static void print(String name, String text) {
        print(name, text.getBytes(StandardCharsets.UTF_8));
    }

    /** Prints the constants of a class and of those above it, as text. */
    static void constants(String kind, Class<?> c) throws Exception {
        TreeMap<String, String> all = new TreeMap<>();
        for (java.lang.reflect.Field f : c.getFields()) {
            all.put(f.getName(), String.valueOf(f.get(null)));
        }
        for (java.lang.reflect.Field f : c.getDeclaredFields()) {
            f.setAccessible(true);
            all.put(f.getName(), String.valueOf(f.get(null)));
        }
        for (java.util.Map.Entry<String, String> e : all.entrySet()) {
            print(kind + " " + e.getKey(), e.getValue());
        }
    }

    /** Keys of one letter are in their order in a HashMap. */
    static void frame(String name, SerializeType codec, int code, int flag, int opaque, String remark, String body, String... fields) {
        RemotingCommand c = RemotingCommand.createRequestCommand(code, null);
        c.setSerializeTypeCurrentRPC(codec);
        c.setLanguage(LanguageCode.GO);
        c.setVersion(413);
        c.setFlag(flag);
        c.setOpaque(opaque);
        c.setRemark(remark);
        c.setExtFields(new HashMap<>());
        for (int i = 0; i < fields.length; i += 2) {
            c.addExtField(fields[i], fields[i + 1]);
        }
        if (!body.isEmpty()) {
            c.setBody(body.getBytes(StandardCharsets.UTF_8));
        }
        print("frame " + name + (codec == SerializeType.JSON ? " json" : " binary"), c.encode());
    }

    static MessageExt stored(String topic, String body, String born, String store) {
        MessageExt m = new MessageExt();
        m.setTopic(topic);
        m.setBody(body.getBytes(StandardCharsets.UTF_8));
        m.setBodyCRC(UtilAll.crc32(m.getBody()));
        m.setQueueId(3);
        m.setFlag(5);
        m.setQueueOffset(77);
        m.setCommitLogOffset(4242);
        m.setBornTimestamp(1700000000123L);
        m.setBornHost(new InetSocketAddress(born, 4321));
        m.setStoreTimestamp(1700000000456L);
        m.setStoreHost(new InetSocketAddress(store, 10911));
        m.setReconsumeTimes(2);
        m.setPreparedTransactionOffset(99);
        m.putUserProperty("color", "red");
        if (born.contains(":")) {
            m.setBornHostV6Flag();
        }
        if (store.contains(":")) {
            m.setStoreHostAddressV6Flag();
        }
        return m;
    }

    public static void main(String[] args) throws Exception {
        for (SerializeType codec : SerializeType.values()) {
            frame("send", codec, RequestCode.SEND_MESSAGE_V2, 0, 7, null, "body", "a", "group", "b", "topic", "i", "k\u0001v\u0002");
            frame("one-way", codec, RequestCode.END_TRANSACTION, 2, -3, null, "");
            frame("answer", codec, ResponseCode.SUCCESS, 1, 7, null, "", "offset", "12");
            frame("refusal", codec, ResponseCode.TOPIC_NOT_EXIST, 1, 1 << 30, "no \"topic\"\n\u00fc\ud83d\ude00", "");
        }
        String longTopic = String.join("", java.util.Collections.nCopies(13, "0123456789"));
        print("message v4", MessageDecoder.encode(stored("T", "hello", "127.0.0.1", "10.0.0.2"), false));
        print("message v6 born", MessageDecoder.encode(stored("T", "hello", "2001:db8::1", "10.0.0.2"), false));
        print("message v6 store", MessageDecoder.encode(stored("T", "hello", "127.0.0.1", "2001:db8::2"), false));
        print("message v6 both", MessageDecoder.encode(stored("T", "hello", "2001:db8::1", "2001:db8::2"), false));
        MessageExt compressed = stored("T", "", "127.0.0.1", "10.0.0.2");
        byte[] large = String.join("", java.util.Collections.nCopies(100, "hello")).getBytes(StandardCharsets.UTF_8);
        compressed.setBody(CompressorFactory.getCompressor(CompressionType.ZLIB).compress(large, 5));
        compressed.setBodyCRC(UtilAll.crc32(compressed.getBody()));
        compressed.setSysFlag(MessageSysFlag.COMPRESSED_FLAG | CompressionType.ZLIB.getCompressionFlag());
        print("message compressed", MessageDecoder.encode(compressed, false));
        MessageExt half = stored("T", "hello", "127.0.0.1", "10.0.0.2");
        half.setSysFlag(MessageSysFlag.TRANSACTION_PREPARED_TYPE);
        print("message half", MessageDecoder.encode(half, false));
        MessageExt far = stored(longTopic, "hello", "127.0.0.1", "10.0.0.2");
        MessageExtBrokerInner inner = new MessageExtBrokerInner(); // only the store writes the second magic, and offsets later
        inner.setVersion(MessageVersion.MESSAGE_VERSION_V2);
        inner.setTopic(far.getTopic());
        inner.setBody(far.getBody());
        inner.setBodyCRC(far.getBodyCRC());
        inner.setQueueId(far.getQueueId());
        inner.setFlag(far.getFlag());
        inner.setBornTimestamp(far.getBornTimestamp());
        inner.setBornHost(far.getBornHost());
        inner.setStoreTimestamp(far.getStoreTimestamp());
        inner.setStoreHost(far.getStoreHost());
        inner.setReconsumeTimes(far.getReconsumeTimes());
        inner.setPreparedTransactionOffset(far.getPreparedTransactionOffset());
        inner.setPropertiesString(MessageDecoder.messageProperties2String(far.getProperties()));
        MessageExtEncoder encoder = new MessageExtEncoder(1 << 20, new MessageStoreConfig());
        if (encoder.encode(inner) != null) {
            throw new IllegalStateException("the store refuses the message");
        }
        ByteBuffer stored = encoder.getEncoderBuffer();
        print("message long topic", stored.limit(stored.position() + stored.getInt(stored.position())));

        Message one = new Message("T", "first".getBytes(StandardCharsets.UTF_8));
        one.setFlag(5);
        one.putUserProperty("color", "red");
        Message two = new Message("T", "second".getBytes(StandardCharsets.UTF_8));
        two.putUserProperty("color", "blue");
        print("batch", MessageDecoder.encodeMessages(Arrays.asList(one, two)));
        TreeMap<String, String> properties = new TreeMap<>();
        properties.put("a", "1");
        properties.put("b", "");
        properties.put("c", "x y");
        print("properties", MessageDecoder.messageProperties2String(properties));
        print("id v4", MessageDecoder.createMessageId(new InetSocketAddress("10.0.0.2", 10911), 4242));
        print("id v6", MessageDecoder.createMessageId(new InetSocketAddress("2001:db8::2", 10911), 1L << 40));

        RemotingCommand c = RemotingCommand.createRequestCommand(41, null);
        TreeMap<String, String> signed = new TreeMap<>();
        signed.put("AccessKey", "perfmq-admin");
        signed.put("a", "2");
        signed.put("b", "1");
        c.setBody("hello".getBytes(StandardCharsets.UTF_8));
        print("signature", AclUtils.calSignature(AclUtils.combineRequestContent(c, signed), "perfmq-secret"));
        for (String tag : new String[] {"Aa", "hello", "\ud83d\ude00"}) {
            print("hash " + tag, ByteBuffer.allocate(4).putInt(tag.hashCode()).array());
        }
        constants("request", RequestCode.class);
        constants("answer", ResponseCode.class);
        constants("sysflag", MessageSysFlag.class);
        constants("pull flag", PullSysFlag.class);
        constants("permission", PermName.class);
        constants("property", MessageConst.class);
    }
}

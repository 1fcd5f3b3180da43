import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.utils.MessageUtil;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/** Requests and replies by RocketMQ's own client: java Rocket.java NAME-SERVER requester|responder TOPIC COUNT */
public class Rocket {
    public static void main(String[] args) throws Exception {
        // Else the client's own threads keep the program alive.
        Thread.currentThread().setUncaughtExceptionHandler((thread, failure) -> {
            failure.printStackTrace();
            System.exit(1);
        });
        DefaultMQProducer producer = new DefaultMQProducer("interop-" + args[1]);
        producer.setNamesrvAddr(args[0]);
        producer.setMqClientApiTimeout(60_000); // of the name server, on a busy machine
        producer.start();
        int count = Integer.parseInt(args[3]);
        if (args[1].equals("requester")) {
            // The heart-beat before the first request is left out while the timer's is being sent, and without it the
            // broker does not know where to push the reply.
            producer.send(new Message(args[2] + "-hello", "hello".getBytes()), 60_000);
            while (!producer.getDefaultMQProducerImpl().getMqClientFactory().sendHeartbeatToAllBrokerWithLock()) {
                Thread.sleep(10);
            }
            for (int i = 0; i < count; i++) {
                Message reply = producer.request(new Message(args[2], "ping".getBytes()), 60_000);
                if (!new String(reply.getBody()).equals("pong")) {
                    throw new IllegalStateException("request " + i + ": " + reply);
                }
            }
        } else {
            respond(producer, args[0], args[2], count);
        }
        System.out.println("done");
        System.exit(0);
    }

    static void respond(DefaultMQProducer producer, String nameServer, String topic, int count) throws Exception {
        CountDownLatch left = new CountDownLatch(count);
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer("interop-responder");
        consumer.setNamesrvAddr(nameServer);
        consumer.setMqClientApiTimeout(60_000);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            try {
                for (MessageExt m : messages) {
                    producer.send(MessageUtil.createReplyMessage(m, "pong".getBytes()), 60_000);
                    left.countDown();
                }
            } catch (Exception e) {
                e.printStackTrace();
                System.exit(1);
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        if (!left.await(120, TimeUnit.SECONDS)) {
            throw new IllegalStateException("requests that did not come: " + left.getCount());
        }
        consumer.shutdown();
    }
}

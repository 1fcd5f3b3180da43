import io.grpc.netty.shaded.io.grpc.netty.NettyServerBuilder;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.util.List;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.common.utils.AbstractStartAndShutdown;
import org.apache.rocketmq.proxy.ProxyStartup;
import org.apache.rocketmq.proxy.config.ConfigurationManager;
import org.apache.rocketmq.proxy.grpc.GrpcServerBuilder;
import org.apache.rocketmq.proxy.grpc.v2.GrpcMessagingApplication;
import org.apache.rocketmq.proxy.service.cert.TlsCertificateManager;

/** ProxyStartup for loopback: its own listens on all addresses, and so does its second server, for remoting clients. */
public class LoopbackProxy extends ProxyStartup {
  static class Builder extends GrpcServerBuilder {
    @SuppressWarnings("unchecked")
    Builder(ThreadPoolExecutor executor, int port, TlsCertificateManager tls) throws Exception {
      super(executor, port, tls);
      var addresses = NettyServerBuilder.class.getDeclaredField("listenAddresses");
      addresses.setAccessible(true);
      ((List<SocketAddress>) addresses.get(serverBuilder)).set(0, new InetSocketAddress("127.0.0.1", port));
    }
  }

  public static void main(String[] args) {
    try {
      start(args);
    } catch (Exception e) {
      e.printStackTrace();
      System.exit(1);
    }
  }

  private static void start(String[] args) throws Exception {
    initConfiguration(parseCommandLineArgument(args));
    initThreadPoolMonitor();
    var executor = createServerExecutor();
    var messages = createMessagingProcessor(); // with a broker in local mode
    var services = ProxyStartup.class.getDeclaredField("PROXY_START_AND_SHUTDOWN");
    services.setAccessible(true);
    var parts = (AbstractStartAndShutdown) services.get(null);
    var tls = new TlsCertificateManager();
    var application = GrpcMessagingApplication.create(messages);
    var server = new Builder(executor, ConfigurationManager.getProxyConfig().getGrpcServerPort(), tls)
        .addService(application).configInterceptor().shutdownTime(1, TimeUnit.SECONDS).build();
    parts.start();
    tls.start();
    application.start();
    server.start();
    Runtime.getRuntime().addShutdownHook(new Thread(() -> {
      try {
        server.shutdown();
        application.shutdown();
        tls.shutdown();
        parts.preShutdown();
        parts.shutdown();
      } catch (Exception e) {
        e.printStackTrace();
      }
    }));
    System.out.println("rocketmq-proxy startup successfully");
  }
}

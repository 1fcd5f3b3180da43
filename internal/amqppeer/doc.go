// Package amqppeer holds tests of AMQP 1.0 drivers on peers that are told what to do: what was seen on RabbitMQ 4.0,
// Qpid Broker-J 9.2 and Qpid Proton, and what the specification allows a broker to do. They belong to no driver:
// clients lists those that they run with, one line each, and which of them fails what, and why. An exception that is
// not true any more fails the test.
package amqppeer

"""The only code that speaks to brokers. Two halves that share nothing but the configuration:

the data plane (consumer, producer, transactional_producer, admin) is librdkafka behind the ports of streamfleet.ports,
always with partitions that were assigned to it; the group client (wire, connection, coordinator, group_client,
membership) speaks the group protocol itself and is the only one that reads or writes offsets.
What is done with records and topics is decided above, in task/ and thread/.
"""

"""Test a topology without a broker: TopologyTestDriver, its input and output topics, and a clock that is moved by
hand.
"""

from streamfleet.testing.driver import TopologyTestDriver
from streamfleet.testing.input_topic import TestInputTopic
from streamfleet.testing.manual_clock import ManualClock
from streamfleet.testing.output_topic import TestOutputTopic
from streamfleet.testing.recording_producer import ProducedRecord

__all__ = ["ManualClock", "ProducedRecord", "TestInputTopic", "TestOutputTopic", "TopologyTestDriver"]

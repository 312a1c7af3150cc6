"""Metrics, under the name that NNX code imports them from."""

from nnxkit.training.metrics import Accuracy as Accuracy
from nnxkit.training.metrics import Average as Average
from nnxkit.training.metrics import Metric as Metric
from nnxkit.training.metrics import MetricState as MetricState
from nnxkit.training.metrics import MultiMetric as MultiMetric
from nnxkit.training.metrics import Statistics as Statistics
from nnxkit.training.metrics import Welford as Welford

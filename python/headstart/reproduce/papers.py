"""The publications."""

from headstart.reproduce.experiment import Paper

FAST_START = Paper(
    "fast_start",
    "TCP Fast Start: A Technique for Speeding Up Web Transfers",
    "V. N. Padmanabhan, R. H. Katz",
    "IEEE Globecom Internet Mini-Conference, 1998",
)
SWIFT_START = Paper(
    "swift_start",
    "A Swifter Start for TCP",
    "C. Partridge, D. Rockwell, M. Allman, R. Krishnan, J. Sterbenz",
    "BBN Technical Report 8339, 2002",
)
ADAPTIVE = Paper(
    "adaptive",
    "Network Adaptive TCP Slow Start",
    "Y. Bhumralkar, J. Lung, P. Varaiya",
    "University of California, Berkeley",
)
IW10 = Paper(
    "iw10",
    "An Argument for Increasing TCP's Initial Congestion Window",
    "N. Dukkipati, T. Refice, Y. Cheng, J. Chu, T. Herbert, A. Agarwal, A. Jain, N. Sutin",
    "ACM SIGCOMM Computer Communication Review, 2010",
)
HYSTART = Paper(
    "hystart",
    "Taming the Elephants: New TCP Slow Start (HyStart)",
    "S. Ha, I. Rhee",
    "Computer Networks, 2011",
)

PAPERS = (FAST_START, SWIFT_START, ADAPTIVE, IW10, HYSTART)
"""In the order of the report."""

# 3000 transfers of 40 packets of 1000 bytes, a Poisson process, over 1.6 Mbit/s with 20 packets of queue.
# Arguments: agent (Newreno or Sack1), round-trip time in ms, mean gap in ms, number of the random stream. Prints
# the time of each transfer in ms, from its start to its last acknowledgement.
lassign $argv agent rtt gap stream
set ns [new Simulator]
set random [new RNG]
$random seed [expr {$stream + 1}]
set began 0.0
set a [$ns node]
set b [$ns node]
$ns duplex-link $a $b 1.6Mb [expr {$rtt / 2.0}]ms DropTail
$ns queue-limit $a $b 20
$ns queue-limit $b $a 1000
Agent/TCP set window_ 10000
Agent/TCP set syn_ false
Agent/TCP set delay_growth_ false
Agent/TCP set windowInit_ 2
Agent/TCP set packetSize_ 1000
Agent/TCP set tcpTick_ 0.01
Agent/TCP set minrto_ 0.2
Agent/TCP set rtxcur_init_ 1.0
set sink [expr {$agent eq "Sack1" ? "Agent/TCPSink/Sack1" : "Agent/TCPSink"}]
for {set i 0} {$i < 3000} {incr i} {
    set tcp [new Agent/TCP/$agent]
    set end [new $sink]
    $ns attach-agent $a $tcp
    $ns attach-agent $b $end
    $ns connect $tcp $end
    set began [expr {$began + [$random exponential [expr {$gap / 1000.0}]]}]
    $tcp proc done {} "puts \[expr {(\[$ns now\] - $began) * 1000}\]"
    $ns at $began "$tcp advance 40"
}
$ns at [expr {$began + 200}] "exit 0"
$ns run

# Scenario A: two bulk flows, the second from 10 s, 100 Mbit/s, 102 ms, 850 packets, 60 s. Argument: agent.
lassign $argv agent
set ns [new Simulator]
set a [$ns node]
set b [$ns node]
$ns duplex-link $a $b 100Mb 51ms DropTail
$ns queue-limit $a $b 850
$ns queue-limit $b $a 850
Agent/TCP set window_ 100000
Agent/TCP set packetSize_ 1460
foreach start {0 10} {
    set tcp [new Agent/TCP/$agent]
    set end [new Agent/TCPSink/Sack1/DelAck]
    $ns attach-agent $a $tcp
    $ns attach-agent $b $end
    $ns connect $tcp $end
    set ftp [new Application/FTP]
    $ftp attach-agent $tcp
    $ns at $start "$ftp start"
}
$ns at 60 "exit 0"
$ns run

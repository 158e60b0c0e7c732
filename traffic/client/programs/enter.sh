#!/bin/sh
# mpiexec's way to another host in the place of ssh: enter.sh [OPTIONS] HOST COMMAND...
# runs the command where that host's network is, with the /sys that belongs to it.
while [ "${1#-}" != "$1" ]; do shift; done
host=$1
shift
exec nsenter --net="$HPN_NAMESPACES/$host" unshare --mount /bin/sh -c "mount -t sysfs sysfs /sys 2>/dev/null; $*"

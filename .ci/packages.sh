# Sourced by bash: the Debian packages that hpn works with, and installing some as root, of which none may start a daemon.
# tests/scenarios/test_ci_examples.py holds what users copy (examples/own-repository) against this list.

# command -> package
declare -A lab_packages=([bird]=bird2 [nft]=nftables [ip]=iproute2 [ping]=iputils-ping)
declare -A test_packages=([iperf3]=iperf3 [tshark]=tshark [mnexec]=mininet [stress]=stress [bgpd]=frr [dot]=graphviz)
declare -A guest_packages=([modprobe]=kmod [file]=file [ps]=procps)
declare -A engine_packages=([linux.uml]=user-mode-linux [qemu-system-x86_64]=qemu-system-x86 [busybox]=busybox-static [teamd]=libteam-utils)
# Of those that build the kernel of virtual time testbed/vm/kernel_build.py knows which are missing.
kernel_packages=(gcc make flex bison bc patch tar xz-utils libc6-dev)
pip_packages=(python3-venv git ca-certificates)

# What a bare Debian 12 needs to install hpn with pip and to run drills in virtual time.
virtual_time_packages() {
  echo "${lab_packages[@]}" "${guest_packages[@]}" "${kernel_packages[@]}" "${pip_packages[@]}"
}

# install_packages PACKAGE...
install_packages() (
  policy=/usr/sbin/policy-rc.d
  if [ ! -e $policy ]; then
    trap 'rm -f $policy' EXIT
    printf '#!/bin/sh\nexit 101\n' > $policy
    chmod +x $policy
  fi
  export DEBIAN_FRONTEND=noninteractive
  echo "installing: $*"
  apt-get update -qq && apt-get install -y -qq --no-install-recommends "$@" >/dev/null
)

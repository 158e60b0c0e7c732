# Sourced: installing Debian packages as root, of which none may start a daemon.

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

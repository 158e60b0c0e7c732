#!/usr/bin/env bash
# certificates.sh FOLDER: an authority of your own and one certificate that scheduler, workers and hpn share. Who has key.pem
# can run programs on all of them: keep the folder to yourself (it is made with mode 0700), and make new ones after 30 days.
set -euo pipefail
umask 077
mkdir "$1"
cd "$1"
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj "/CN=hpn authority" \
  -keyout ca-key.pem -out ca.pem 2>/dev/null
openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=hpn" -keyout key.pem -out cert.csr 2>/dev/null
openssl x509 -req -in cert.csr -CA ca.pem -CAkey ca-key.pem -CAcreateserial -days 30 -out cert.pem 2>/dev/null
rm -f cert.csr ca-key.pem ca.srl

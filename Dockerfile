# hpn with all that labs and guests need, and the kernel of virtual time: make image
# docker run --rm --privileged --tmpfs /tmp:exec -v "$PWD":/work hpn hpn ci run suite.yaml --baseline baseline
FROM debian:12
ENV HPN_CACHE_DIR=/opt/hpn/.cache/hpn PATH=/opt/hpn/.venv/bin:$PATH
WORKDIR /opt/hpn
COPY . .
RUN bash -c '. .ci/packages.sh && install_packages make "${pip_packages[@]}"'
RUN make guests
RUN make kernel
WORKDIR /work
CMD ["hpn"]

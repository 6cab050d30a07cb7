# accel-opt in an image of its own: built on Debian 12, installed as the Debian
# package of tools/package, which depends on no other.
#
#   docker build -t accel-opt .
#   docker run --rm -v "$PWD:/work" accel-opt plan fsdp.yaml --model ./llama-8b --target h100-sxm-80gb
#
# Where it writes files (-o, --report), it runs as who may: docker run --user "$(id -u):$(id -g)" ...
# accel-run is not in it: it is compiled against the torch of the machine that
# trains (docs/packages.md).
FROM debian:12-slim AS build
WORKDIR /src
# First what rarely changes, so that the layer with the packages is kept.
COPY tools/setup tools/setup
# "file" and dpkg-dev are what CPack asks for the dependencies of the package.
RUN tools/setup --no-torch \
 && apt-get install -y -qq --no-install-recommends dpkg-dev file \
 && rm -rf /var/lib/apt/lists/*
COPY . .
RUN cmake -S . -B build -G Ninja -DCMAKE_BUILD_TYPE=Release \
      -DACCEL_RUNTIME=OFF -DACCEL_TESTS=OFF \
 && ninja -C build accel-opt \
 && tools/package deb

FROM debian:12-slim
# Bound for this command alone, so that the package itself takes no layer.
RUN --mount=type=bind,from=build,source=/src/dist,target=/dist \
    apt-get update -qq \
 && apt-get install -y -qq --no-install-recommends /dist/*.deb \
 && rm -rf /var/lib/apt/lists/*
# Reading a mounted folder needs no more rights than these.
USER nobody
WORKDIR /work
ENTRYPOINT ["accel-opt"]
CMD ["--help"]

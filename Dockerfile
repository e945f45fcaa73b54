# The command in an image of its own: docker build -t stitchwork . && docker run --rm stitchwork compare bert_layer
#   docker run --rm -v "$PWD:/home/user/work" -w /home/user/work stitchwork view model.hlo -o page.html
FROM debian:12 AS build
COPY . /source
WORKDIR /source
# The packages for building, the build and its packages, as on any Debian 12.
RUN ./scripts/package

FROM debian:12
COPY --from=build /source/build/packages/stitchwork_*.deb /source/build/packages/stitchwork-gui_*.deb /packages/
RUN apt-get update \
 && apt-get install -y --no-install-recommends /packages/*.deb clang \
 && rm -rf /var/lib/apt/lists/* /packages \
 && useradd --create-home user
USER user
WORKDIR /home/user
ENTRYPOINT ["stitchwork"]
CMD ["--help"]

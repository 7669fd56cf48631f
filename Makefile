# The short way in; the build itself is CMake's.
PREFIX ?= /usr/local

all: build/build.ninja
	cmake --build build

build/build.ninja:
	cmake --preset release

# ./check leaves CUDA code there that only a driver can finish.
whole: build/build.ninja
	cmake -DFTH_CUDA_CODE=all build
	cmake --build build

install: whole
	cmake --install build --prefix $(PREFIX)

dist: whole
	cmake --build build --target all_tests
	tools/dist

check:
	./check

format:
	tools/sources | xargs clang-format -i

# Pages, and parts of the Python binding, that are made from tables.
docs: all
	build/tools/gen_errors_doc > docs/errors.md
	build/tools/gen_ops_doc > docs/operations.md
	tools/gen_python
	tools/gen_stub
	build/tools/gen_cli_docs docs

# Pictures of docs/, by the commands of docs/pictures.md.
pictures: all
	tools/make_pictures

clean:
	rm -rf build dist

.PHONY: all whole install dist check format docs pictures clean

# What every target of the project is compiled with.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

# address, thread, undefined, fuzzer, or several with commas.
set(STROBE_SANITIZE "" CACHE STRING "Sanitizers to build everything with")

add_library(strobe_options INTERFACE)
target_compile_options(strobe_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion
  # IEEE semantics are part of the contract: NaN and infinity must come out where the oracle has
  # them, and a compiler that fuses a*b+c on its own would break bit-equality between ISAs' code paths.
  -ffp-contract=off
  $<$<BOOL:${STROBE_WERROR}>:-Werror>)
target_include_directories(strobe_options INTERFACE
  "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}/include")
if(STROBE_SANITIZE)
  # vptr takes objects of a library that was loaded for strangers: their class is described twice.
  target_compile_options(strobe_options INTERFACE
    -fsanitize=${STROBE_SANITIZE} -fno-sanitize=vptr -fno-sanitize-recover=all -fno-omit-frame-pointer -g)
  target_link_options(strobe_options INTERFACE -fsanitize=${STROBE_SANITIZE})
  # On Arm, Clang checks products of 128 bits by a function that GCC's library does not have.
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang" AND CMAKE_SYSTEM_PROCESSOR STREQUAL "aarch64")
    target_link_options(strobe_options INTERFACE --rtlib=compiler-rt --unwindlib=libgcc)
  endif()
endif()

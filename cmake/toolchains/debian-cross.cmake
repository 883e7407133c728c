# Debian's cross compiler for CMAKE_SYSTEM_PROCESSOR, and qemu to run what it builds.
set(CMAKE_SYSTEM_NAME Linux)
set(triple ${CMAKE_SYSTEM_PROCESSOR}-linux-gnu)
set(CMAKE_C_COMPILER ${triple}-gcc)
set(CMAKE_CXX_COMPILER ${triple}-g++)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-${CMAKE_SYSTEM_PROCESSOR}-static -L /usr/${triple})

# The libraries used are headers alone, so those of the host serve. The packages in
# /usr/share/cmake are found as they are; fmt keeps its own under the host's architecture.
set(fmt_DIR /usr/lib/${CMAKE_HOST_SYSTEM_PROCESSOR}-linux-gnu/cmake/fmt)

# GoogleTest is no header library: modules/FindGTest.cmake builds it for the target.
list(APPEND CMAKE_MODULE_PATH "${CMAKE_CURRENT_LIST_DIR}/modules")

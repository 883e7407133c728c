# Whether the laboratory is built. The program and the tests cannot do without, and say what they miss;
# the Python package can, so that installing it takes a compiler and nothing else.
option(STROBE_BUILD_LABORATORY "Give the Python package what the program does, where the libraries for it are found" ON)

find_file(STROBE_CHART_JS NAMES Chart.min.js chart.min.js
          PATHS /usr/share/javascript/chart.js /usr/share/nodejs/chart.js/dist
          NO_CMAKE_FIND_ROOT_PATH
          DOC "Chart.js 3, minified, to be embedded into the pages of strobe report")

set(STROBE_LABORATORY OFF)
if(STROBE_BUILD_CLI OR STROBE_BUILD_TESTS)
  set(STROBE_LABORATORY ON)
elseif(STROBE_BUILD_PYTHON AND STROBE_BUILD_LABORATORY)
  find_package(fmt QUIET)
  find_package(CLI11 QUIET)
  find_package(nlohmann_json QUIET)
  if(fmt_FOUND AND CLI11_FOUND AND nlohmann_json_FOUND AND STROBE_CHART_JS)
    set(STROBE_LABORATORY ON)
  else()
    message(STATUS "strobe.compare is left out: it needs fmt, CLI11, nlohmann_json and Chart.js 3 "
                   "(libfmt-dev libcli11-dev nlohmann-json3-dev libjs-chart.js)")
  endif()
endif()

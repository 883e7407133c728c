# strobe_embed(TARGET FUNCTION scope::name HEADER file BASE folder FILES file...)
#
# Gives the target, one of the same folder, the files within itself. FUNCTION, which HEADER declares,
# returns their names and texts; a name is the path from BASE, or what stands before a "=" in FILES.
function(strobe_embed target)
  cmake_parse_arguments(PARSE_ARGV 1 embed "" "FUNCTION;HEADER;BASE" "FILES")
  set(script "${PROJECT_SOURCE_DIR}/cmake/embed.cmake")
  set(output "${CMAKE_CURRENT_BINARY_DIR}/embedded.cpp")
  set(named "")
  set(paths "")
  foreach(file IN LISTS embed_FILES)
    if(file MATCHES "^([^=]+)=(.+)$")
      list(APPEND named "${file}")
      list(APPEND paths "${CMAKE_MATCH_2}")
    else()
      cmake_path(RELATIVE_PATH file BASE_DIRECTORY "${embed_BASE}" OUTPUT_VARIABLE name)
      list(APPEND named "${name}=${file}")
      list(APPEND paths "${file}")
    endif()
  endforeach()
  string(REPLACE ";" "|" named "${named}")
  add_custom_command(OUTPUT "${output}"
    COMMAND "${CMAKE_COMMAND}" -D "FILES=${named}" -D "HEADER=${embed_HEADER}"
            -D "FUNCTION=${embed_FUNCTION}" -D "OUTPUT=${output}" -P "${script}"
    DEPENDS ${paths} "${script}"
    COMMENT "Embedding the files of ${embed_FUNCTION}" VERBATIM)
  target_sources(${target} PRIVATE "${output}")
  # Where nothing is built but other files are looked at, as by clang-tidy, it is not there.
  set_source_files_properties("${output}" PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

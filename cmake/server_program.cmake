# remote_server_program(OUT): writes OUT, a C++ file with src/server as one archive (src/server/archive.hpp).
function(remote_server_program out)
  file(GLOB files CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/src/server
       src/server/lib/*.sh src/server/python/*.py)
  list(REMOVE_ITEM files python/burn.py python/deep.py)  # they are passed in a variable of the command
  list(TRANSFORM files PREPEND ${PROJECT_SOURCE_DIR}/src/server/ OUTPUT_VARIABLE paths)
  set(pack ${PROJECT_SOURCE_DIR}/cmake/server_program)
  add_custom_command(
    OUTPUT ${out}
    COMMAND sh ${pack} ${PROJECT_SOURCE_DIR}/src/server ${out} ${files}
    DEPENDS ${paths} ${pack}
    VERBATIM)
  # For targets in another folder's CMakeLists.txt, which do not know the command.
  add_custom_target(remote_server_archive DEPENDS ${out})
endfunction()

# remote_embed(OUT FILE...): writes OUT, a C++ file that defines remote::scripts::text(name) over the FILEs.
# Each file becomes a list of raw string literals, short enough for any compiler.
function(remote_embed out)
  add_custom_command(
    OUTPUT ${out}
    COMMAND ${CMAKE_COMMAND} "-DOUT=${out}" "-DFILES=${ARGN}" -P ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/embed_run.cmake
    DEPENDS ${ARGN} ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/embed_run.cmake
    VERBATIM)
endfunction()

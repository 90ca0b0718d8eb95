# remote_embed(OUT NAMESPACE FUNCTION FILE...): writes OUT, a C++ file that defines std::string_view
# NAMESPACE::FUNCTION(std::string_view name), which returns the FILEs by their names without folders.
function(remote_embed out namespace function)
  add_custom_command(
    OUTPUT ${out}
    COMMAND ${CMAKE_COMMAND} "-DOUT=${out}" "-DNAMESPACE=${namespace}" "-DFUNCTION=${function}" "-DFILES=${ARGN}"
            -P ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/embed_run.cmake
    DEPENDS ${ARGN} ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/embed_run.cmake
    VERBATIM)
endfunction()

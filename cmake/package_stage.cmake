# Run by cpack when the files of the Debian package are complete. Adds what Debian's policy requires, and makes the
# package reproducible. The date is SOURCE_DATE_EPOCH (seconds), or the current time.
set(root ${CPACK_TEMPORARY_DIRECTORY})
set(doc ${root}/usr/share/doc/remote)
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
string(TIMESTAMP epoch "%s" UTC)

function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(REMOVE ${doc}/LICENSE)
file(COPY_FILE ${CPACK_REMOTE_COPYRIGHT} ${doc}/copyright)
file(WRITE ${doc}/changelog
     "remote (${CPACK_PACKAGE_VERSION}) unstable; urgency=medium\n\n  * Release ${CPACK_PACKAGE_VERSION}.\n\n"
     " -- ${CPACK_PACKAGE_CONTACT}  ${date}\n")
file(GLOB_RECURSE pages ${root}/usr/share/man/*)
run(gzip -9n ${doc}/changelog ${pages})
file(GLOB archives ${root}/usr/lib/*/*.a)
run(strip --strip-debug --remove-section=.comment --remove-section=.note --enable-deterministic-archives ${archives})
# All users may run programs and read everything else, regardless of the umask of the build.
run(chmod -R u=rwX,go=rX ${root})
run(find ${root} -exec touch --no-dereference --date=@${epoch} {} +)

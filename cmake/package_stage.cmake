# Run by cpack when the files of the Debian package stand together: what Debian's policy wants of them, and what makes the
# package the same bytes each time. The date is that of SOURCE_DATE_EPOCH (seconds), else of now.
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
# Programs may be run, everything else may be read, by all, whatever the umask of the build was.
run(chmod -R u=rwX,go=rX ${root})
run(find ${root} -exec touch --no-dereference --date=@${epoch} {} +)

# What `cmake --install` installs: the programs with their rules, man pages and completion, and the libraries with their
# headers, which find_package(gopt) finds: gopt::gopt is all of them.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(libraries ir onnx rules generator verifier optimizer planner codegen driver)
add_library(gopt_all INTERFACE)
set(targets gopt_options gopt_all)
set_target_properties(gopt_options PROPERTIES EXPORT_NAME options)
set_target_properties(gopt_all PROPERTIES EXPORT_NAME gopt)
foreach(name ${libraries})
  target_link_libraries(gopt_all INTERFACE gopt_${name})
  set_target_properties(gopt_${name} PROPERTIES EXPORT_NAME ${name})
  list(APPEND targets gopt_${name})
endforeach()

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/gopt)
install(TARGETS ${targets} EXPORT gopt-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT gopt-targets NAMESPACE gopt:: DESTINATION ${package_folder})
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/gopt-config.cmake.in ${PROJECT_BINARY_DIR}/gopt-config.cmake
  INSTALL_DESTINATION ${package_folder} PATH_VARS CMAKE_INSTALL_DATAROOTDIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/gopt-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/gopt-config.cmake ${PROJECT_BINARY_DIR}/gopt-config-version.cmake DESTINATION ${package_folder})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/gopt DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

install(TARGETS gopt rulegen RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/rules/ DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/gopt/rules FILES_MATCHING PATTERN "*.rules")
foreach(program gopt rulegen)
  install(FILES ${PROJECT_SOURCE_DIR}/tools/completion/gopt.bash RENAME ${program}
    DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/bash-completion/completions)
endforeach()
# Of what the installed programs print.
install(CODE "set(prefix \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}\")
execute_process(COMMAND python3 \"${PROJECT_SOURCE_DIR}/scripts/make_man\" \"\${prefix}/${CMAKE_INSTALL_MANDIR}/man1\"
  \"\${prefix}/${CMAKE_INSTALL_BINDIR}/gopt\" \"\${prefix}/${CMAKE_INSTALL_BINDIR}/rulegen\" RESULT_VARIABLE failed)
if(failed)
  message(WARNING \"no man pages: scripts/make_man needs python3\")
endif()")

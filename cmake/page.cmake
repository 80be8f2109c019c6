# The page's files become a source of the report room. uPlot comes from npm by the lock file, into
# the build tree; where npm or the network is missing the page is built without it and shows its
# static figures.
#
# As a script (-DASSETS=… -DLIBRARY=… -DOUTPUT=… -P page.cmake) this writes that source.
set(page_files page.html page.css data.js page.js figures.js attractor.js)

if(CMAKE_SCRIPT_MODE_FILE)
  function(append name)
    set(text "")
    foreach(file IN LISTS ARGN)
      if(EXISTS ${file})
        file(READ ${file} part)
        string(APPEND text "${part}")
      endif()
    endforeach()
    if(name MATCHES "script" AND text MATCHES "</script|<!--")
      message(FATAL_ERROR "${name} contains text that ends a script element")
    endif()
    set(source "${source}constexpr char ${name}[] = R\"odecast_page(${text})odecast_page\";\n"
        PARENT_SCOPE)
  endfunction()
  string(CONCAT source "// Written by cmake/page.cmake.\n"
         "#include \"odecast/report/detail/assets.hpp\"\n\nnamespace odecast {\nnamespace {\n\n")
  append(html ${ASSETS}/page.html)
  append(style ${ASSETS}/page.css)
  append(script ${ASSETS}/data.js ${ASSETS}/figures.js ${ASSETS}/attractor.js ${ASSETS}/page.js)
  append(library_script ${LIBRARY}/dist/uPlot.iife.min.js)
  append(library_style ${LIBRARY}/dist/uPlot.min.css)
  append(library_licence ${LIBRARY}/LICENSE)
  set(version "")
  if(EXISTS ${LIBRARY}/package.json)
    file(READ ${LIBRARY}/package.json package)
    string(JSON version GET "${package}" version)
  endif()
  string(APPEND source "constexpr char library_version[] = \"${version}\";\n\n}  // namespace\n\n"
    "PageAssets page_assets() {\n  return {html, style, script, library_script, library_style, "
    "library_licence, library_version};\n}\n\n}  // namespace odecast\n")
  file(WRITE ${OUTPUT} "${source}")
  return()
endif()

find_program(ODECAST_NPM npm DOC "npm, which brings uPlot; OFF for a page with static figures only")
set(assets ${PROJECT_SOURCE_DIR}/odecast/report/assets)
set(npm_tree ${PROJECT_BINARY_DIR}/npm)
set(page_library ${npm_tree}/node_modules/uplot)
if(ODECAST_NPM)
  # Done anew when the lock file has changed, tried again when it failed.
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${assets}/package-lock.json)
  file(SHA256 ${assets}/package-lock.json lock)
  set(installed "")
  if(EXISTS ${npm_tree}/installed)
    file(READ ${npm_tree}/installed installed)
  endif()
  if(NOT installed STREQUAL lock)
    file(REMOVE_RECURSE ${npm_tree})
    file(COPY ${assets}/package.json ${assets}/package-lock.json DESTINATION ${npm_tree})
    execute_process(COMMAND ${ODECAST_NPM} ci --ignore-scripts --no-audit --no-fund
                            --fetch-retries=1
                    WORKING_DIRECTORY ${npm_tree} TIMEOUT 120
                    RESULT_VARIABLE failed OUTPUT_QUIET ERROR_VARIABLE why)
    if(failed EQUAL 0)
      file(WRITE ${npm_tree}/installed ${lock})
    else()
      message(STATUS "npm ci failed: the page will show static figures only. ${why}")
      file(REMOVE_RECURSE ${npm_tree}/node_modules)
    endif()
  endif()
else()
  file(REMOVE_RECURSE ${npm_tree})
endif()
set(library_files "")
if(EXISTS ${page_library}/LICENSE)
  set(library_files ${page_library}/dist/uPlot.iife.min.js)
  install(FILES ${page_library}/LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/odecast
          RENAME LICENSE.uPlot)
endif()
list(TRANSFORM page_files PREPEND ${assets}/)
# Named after what it holds, so that it is written anew when uPlot comes or goes.
if(library_files)
  set(page_source ${PROJECT_BINARY_DIR}/page/assets_with_library.cpp)
else()
  set(page_source ${PROJECT_BINARY_DIR}/page/assets.cpp)
endif()
add_custom_command(
  OUTPUT ${page_source}
  COMMAND ${CMAKE_COMMAND} -DASSETS=${assets} -DLIBRARY=${page_library} -DOUTPUT=${page_source}
          -P ${PROJECT_SOURCE_DIR}/cmake/page.cmake
  DEPENDS ${page_files} ${library_files} ${PROJECT_SOURCE_DIR}/cmake/page.cmake
  COMMENT "Putting the page's files into the library")
target_sources(odecast_report PRIVATE ${page_source})

#pragma once

#include <string_view>

namespace odecast {

/// The files of odecast/report/assets, put into the library when it is built, and uPlot where npm
/// could bring it; empty otherwise.
struct PageAssets {
  std::string_view html, style, script;
  std::string_view library_script, library_style, library_licence, library_version;
};
PageAssets page_assets();

}  // namespace odecast

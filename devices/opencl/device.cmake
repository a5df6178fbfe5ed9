# Headers only: the loader is opened when the program runs.
find_path(TANDEM_OPENCL_HEADERS CL/cl.h REQUIRED)
target_include_directories(tandem_device_opencl SYSTEM PRIVATE ${TANDEM_OPENCL_HEADERS})
target_compile_definitions(tandem_device_opencl PRIVATE CL_TARGET_OPENCL_VERSION=120)

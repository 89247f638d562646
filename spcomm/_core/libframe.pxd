# SPDX-License-Identifier: MIT
"""C declarations: where in the program the caller is, as Python tells it."""

cdef extern from "Python.h":
    ctypedef struct PyFrameObject:
        pass
    PyFrameObject *PyEval_GetFrame()  # borrowed; the caller's, for functions in C have none
    int PyFrame_GetLineNumber(PyFrameObject *frame)
    PyFrameObject *PyFrame_GetBack(PyFrameObject *frame)  # a new reference, or NULL
    ctypedef struct PyCodeObject:
        pass
    PyCodeObject *PyFrame_GetCode(PyFrameObject *frame)  # a new reference


cdef extern from "frameobject.h":
    int PyFrame_GetLasti(PyFrameObject *frame)
